package main

import (
	"context"
	"fmt"

	"optimus/benchmarks/conv"
	"optimus/benchmarks/gemm"
)

// products are the figures of matrix products, in GFLOP/s.
type products struct {
	Peer    string    `json:"peer,omitempty"` // OpenBLAS's version and kernels
	Absent  string    `json:"absent,omitempty"`
	Results []product `json:"results"`
}

type product struct {
	Shape  string  `json:"shape"`
	Ours   float64 `json:"gflops"`
	Packed float64 `json:"packed_gflops"`
	Peer   float64 `json:"openblas_gflops,omitempty"`
	Ratio  float64 `json:"ratio,omitempty"`
	Peak   float64 `json:"peak_gflops,omitempty"`
	Share  float64 `json:"share_of_peak,omitempty"`
}

func measureGemm(ctx context.Context, o options, rep *report) error {
	fmt.Fprintln(o.progress, "measuring matrix products")
	r, err := gemm.Run(ctx, gemm.Options{Rounds: o.rounds})
	if err != nil {
		return err
	}
	rep.Gemm = &products{Peer: r.OpenBLAS}
	if r.Absent != nil {
		rep.Gemm.Absent = r.Absent.Error()
	}
	for _, q := range r.Results {
		rep.Gemm.Results = append(rep.Gemm.Results, product{
			Shape: q.Shape.String(), Ours: q.Ours, Packed: q.Packed, Peer: q.OpenBLAS, Ratio: q.Ratio, Peak: q.Peak, Share: q.Share,
		})
	}
	return nil
}

// convolutions are the figures of ResNet-50's convolutions.
type convolutions struct {
	Peer    string        `json:"peer,omitempty"` // oneDNN's version
	Absent  string        `json:"absent,omitempty"`
	Batch   int           `json:"batch"`
	Results []convolution `json:"results"`
	Total   total         `json:"total"` // each layer as often as it occurs
}

type convolution struct {
	Layer     string  `json:"layer"`
	Count     int     `json:"count"`
	Direction string  `json:"direction"`
	Ours      float64 `json:"ms"`
	Peer      float64 `json:"onednn_ms,omitempty"`
	Ratio     float64 `json:"ratio,omitempty"`
	GFLOPS    float64 `json:"gflops"`
	Share     float64 `json:"share_of_peak,omitempty"` // of the peak before all layers and behind them
}

type total struct {
	Ours  float64 `json:"ms"`
	Peer  float64 `json:"onednn_ms,omitempty"`
	Ratio float64 `json:"ratio,omitempty"`
}

func measureConv(ctx context.Context, o options, rep *report) error {
	fmt.Fprintln(o.progress, "measuring convolutions")
	batch := o.batch
	if batch == 0 {
		batch = 8
	}
	before, err := peak()
	if err != nil {
		return err
	}
	r, err := conv.Run(ctx, conv.Options{Rounds: o.rounds, Batch: batch})
	if err != nil {
		return err
	}
	after, err := peak()
	if err != nil {
		return err
	}
	c := &convolutions{Peer: r.OneDNN, Batch: batch}
	if r.Absent != nil {
		c.Absent = r.Absent.Error()
	}
	const ms = 1e-6 // from nanoseconds
	for _, q := range r.Results {
		row := convolution{
			Layer: q.Layer.Shape.String(), Count: q.Layer.Count, Direction: q.Direction.String(),
			Ours: ms * float64(q.Ours.Median), Peer: ms * float64(q.OneDNN.Median), GFLOPS: q.Rate,
		}
		row.Ratio, _ = q.Ours.Ratio(q.OneDNN)
		if p := (before + after) / 2; p > 0 {
			row.Share = row.GFLOPS / p
		}
		c.Results = append(c.Results, row)
	}
	ours, theirs := r.Total()
	c.Total = total{Ours: ms * float64(ours.Median), Peer: ms * float64(theirs.Median)}
	c.Total.Ratio, _ = ours.Ratio(theirs)
	rep.Conv = c
	return nil
}
