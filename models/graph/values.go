package graph

import (
	"errors"
	"slices"

	"gorgonia.org/tensor"

	"optimus/elastic/checkpoint"
	"optimus/internal/failure"
)

// Values returns the parameters of a checkpoint, by name, as tensors in row-major
// order, and the averages that belong to them (batch norm's). dir is the folder of
// one checkpoint, as spec.Result has it, of a graph or of any other workload.
//
// A tensor writes itself for NumPy: values["w"].WriteNpy(file).
func Values(dir string) (values map[string]*tensor.Dense, err error) {
	if dir == "" {
		return nil, failure.E("read values", "", failure.InvalidArgument, errors.New("no checkpoint is named"), "give the folder that the job's result names")
	}
	r, err := checkpoint.Load(checkpoint.OS{}, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	values = map[string]*tensor.Dense{}
	for block, a := range r.Manifest().Arrays {
		x := make([]float32, a.Size())
		if _, err := r.Read(block, 0, x, nil); err != nil {
			return nil, err
		}
		if len(a.Shape) == 0 {
			values[a.Name] = tensor.New(tensor.FromScalar(x[0]))
			continue
		}
		values[a.Name] = tensor.New(tensor.WithShape(slices.Clone(a.Shape)...), tensor.WithBacking(x))
	}
	return values, nil
}
