//go:build !amd64

package sgemm

func familyFor(string) *family { return &plain }

type call struct{}
