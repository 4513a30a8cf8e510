// Package golden holds the models in PyTorch, for the programs that run them.
package golden

import _ "embed"

// Nets is nets.py, the models' second description.
//
//go:embed nets.py
var Nets []byte
