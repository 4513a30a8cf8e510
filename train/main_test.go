package train

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
)

// TestMain makes the test binary its own child program: a job with launch
// process starts it again as a member, and some tests start it as a job.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "member":
			os.Exit(childMain(os.Args[2:]))
		case "job":
			os.Exit(jobMain(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

func childMain(args []string) int {
	if err := parseChild(args).run(context.Background(), slog.New(slog.NewTextHandler(os.Stderr, nil))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
