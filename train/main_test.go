package train

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"optimus/elastic"
)

// TestMain makes the test binary its own child program: a job with launch
// process starts it again as a member.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "member" {
		os.Exit(childMain(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func childMain(args []string) int {
	fs := flag.NewFlagSet("member", flag.ExitOnError)
	layout, socket, role := fs.String("layout", "", ""), fs.String("socket", "", ""), fs.String("role", "", "")
	id, incarnation := fs.Int("id", 0, ""), fs.Uint64("incarnation", 0, "")
	fs.Parse(args)
	self := elastic.Member{Role: elastic.Role(*role), ID: *id, Incarnation: *incarnation}
	if err := RunMember(context.Background(), *layout, *socket, self, slog.New(slog.NewTextHandler(os.Stderr, nil))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
