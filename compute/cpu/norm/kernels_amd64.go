package norm

import "optimus/internal/level"

var avx2 = kernels{
	moments:   [2]momentsFunc{momentsAVX2, momentsRowAVX2},
	gradSums:  [2][2]gradSumsFunc{{gradSumsAVX2, gradSumsReLUAVX2}, {gradSumsRowAVX2, gradSumsRowReLUAVX2}},
	apply:     [2]applyFunc{applyAVX2, applyResidualAVX2},
	inputGrad: [2][2]inputGradFunc{{inputGradAVX2, inputGradResidualAVX2}, {inputGradReLUAVX2, inputGradReLUResidualAVX2}},
}

var avx512 = kernels{
	moments:   [2]momentsFunc{momentsAVX512, momentsRowAVX512},
	gradSums:  [2][2]gradSumsFunc{{gradSumsAVX512, gradSumsReLUAVX512}, {gradSumsRowAVX512, gradSumsRowReLUAVX512}},
	apply:     [2]applyFunc{applyAVX512, applyResidualAVX512},
	inputGrad: [2][2]inputGradFunc{{inputGradAVX512, inputGradResidualAVX512}, {inputGradReLUAVX512, inputGradReLUResidualAVX512}},
}

func kernelsAt(name string) *kernels {
	switch name {
	case level.AVX512:
		return &avx512
	case level.AVX2:
		return &avx2
	}
	return &plain
}
