package main

import (
	"errors"
	"os"
	"path/filepath"
)

// stateDir is the folder of all that the program keeps between calls: the XDG
// state folder, in which a relative path counts as not set.
func stateDir() (string, error) {
	if d := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "optimus"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("neither XDG_STATE_HOME nor HOME is set")
	}
	return filepath.Join(home, ".local", "state", "optimus"), nil
}
