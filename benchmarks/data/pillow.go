package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed pillow.py
var pillowScript string

// pillowMissing returns why there is no Pillow.
func pillowMissing(ctx context.Context, python string) error {
	_, err := runPython(ctx, python, "import PIL.Image")
	return err
}

// pillowTurn decodes, scales and cuts the pictures with Pillow, for some time, and
// returns how many it makes in a second of processor time. Opening of the set and the
// start of Python do not count.
func pillowTurn(ctx context.Context, python, dir string, p picture, least time.Duration) (float64, error) {
	job, err := json.Marshal(map[string]any{"files": filepath.Join(dir, p.files), "side": p.side, "grey": p.grey, "square": p.square, "least": least.Seconds()})
	if err != nil {
		return 0, err
	}
	out, err := runPython(ctx, python, pillowScript, string(job))
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(out), 64)
}

// runPython runs a script for two minutes at most.
func runPython(ctx context.Context, python, script string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, python, append([]string{"-c", script}, args...)...)
	var out, complaint bytes.Buffer
	c.Stdout, c.Stderr = &out, &complaint
	if err := c.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(complaint.String()), "\n")
		return "", fmt.Errorf("%s: %w: %s", python, err, lines[len(lines)-1])
	}
	return out.String(), nil
}
