package vec

import "optimus/internal/level"

var avx2 = kernels{
	exp: expAVX2, log: logAVX2, tanh: tanhAVX2, sigmoid: sigmoidAVX2, relu: reluAVX2,
	reluGrad: reluGradAVX2, tanhGrad: tanhGradAVX2, mul: mulAVX2,
	sum: sumAVX2, dot: dotAVX2, expSum: expSumAVX2, expTotal: expTotalAVX2,
	maximum: maximumAVX2, index: indexAVX2, dropout: dropoutAVX2, greater: greaterAVX2,
}

var avx512 = kernels{
	exp: expAVX512, log: logAVX512, tanh: tanhAVX512, sigmoid: sigmoidAVX512, relu: reluAVX512,
	reluGrad: reluGradAVX512, tanhGrad: tanhGradAVX512, mul: mulAVX512,
	sum: sumAVX512, dot: dotAVX512, expSum: expSumAVX512, expTotal: expTotalAVX512,
	maximum: maximumAVX512, index: indexAVX512, dropout: dropoutAVX512, greater: greaterAVX512,
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
