package paa

// blocks collects a model's block sizes in the order in which its layers appear.
type blocks []int

// conv adds a convolution without bias: out×in weights for each of area kernel positions.
func (l *blocks) conv(in, out, area int) { *l = append(*l, in*out*area) }

// norm adds a batch normalisation of c channels: gamma and beta.
func (l *blocks) norm(c int) { *l = append(*l, c, c) }

// dense adds weights and bias; a convolution with bias is one over in·area inputs.
func (l *blocks) dense(in, out int) { *l = append(*l, in*out, out) }

// resnext110 is MXNet's ResNeXt for CIFAR-10. Below 164 layers it has basic units, in which the groups are not used.
func resnext110() []int {
	var l blocks
	l.norm(3)
	l.conv(3, 16, 9)
	in := 16
	for _, out := range []int{16, 32, 64} {
		for unit := range 18 {
			l.conv(in, out, 9)
			l.norm(out)
			l.conv(out, out, 9)
			l.norm(out)
			if unit == 0 {
				l.conv(in, out, 1)
				l.norm(out)
			}
			in = out
		}
	}
	l.dense(64, 10)
	return l
}

// resnet50 is the pre-activation ResNet-50 of MXNet: normalisation comes before each convolution.
func resnet50() []int {
	var l blocks
	l.norm(3)
	l.conv(3, 64, 49)
	l.norm(64)
	in, out := 64, 256
	for _, units := range []int{3, 4, 6, 3} {
		for unit := range units {
			l.norm(in)
			l.conv(in, out/4, 1)
			l.norm(out / 4)
			l.conv(out/4, out/4, 9)
			l.norm(out / 4)
			l.conv(out/4, out, 1)
			if unit == 0 {
				l.conv(in, out, 1)
			}
			in = out
		}
		out *= 2
	}
	l.norm(in)
	l.dense(in, 1000)
	return l
}

// resnext101 is MXNet's ResNeXt-101 with 32 groups of width 4: bottlenecks of half the unit's width, normalisation
// after each convolution, also of the data and of the projecting shortcuts.
func resnext101() []int {
	const groups = 32
	var l blocks
	l.norm(3)
	l.conv(3, 64, 49)
	l.norm(64)
	in, out := 64, 256
	for _, units := range []int{3, 4, 23, 3} {
		for unit := range units {
			mid := out / 2
			l.conv(in, mid, 1)
			l.norm(mid)
			l.conv(mid/groups, mid, 9)
			l.norm(mid)
			l.conv(mid, out, 1)
			l.norm(out)
			if unit == 0 {
				l.conv(in, out, 1)
				l.norm(out)
			}
			in = out
		}
		out *= 2
	}
	l.dense(in, 1000)
	return l
}

// inceptionBN is MXNet's Inception-BN, whose convolutions all have a bias and a normalisation.
func inceptionBN(classes int) []int {
	var l blocks
	conv := func(in, out, area int) {
		l.dense(in*area, out)
		l.norm(out)
	}
	// mixed joins up to four towers: 1×1, 3×3 behind a reduction, two 3×3 behind a reduction, projected pool.
	// Without the first tower the pool passes its input on and the module halves the image.
	mixed := func(in, one, red3, three, redD, double, proj int) int {
		if one > 0 {
			conv(in, one, 1)
		}
		conv(in, red3, 1)
		conv(red3, three, 9)
		conv(in, redD, 1)
		conv(redD, double, 9)
		conv(double, double, 9)
		if one == 0 {
			return three + double + in
		}
		conv(in, proj, 1)
		return one + three + double + proj
	}
	conv(3, 64, 49)
	conv(64, 64, 1)
	conv(64, 192, 9)
	c := 192
	for _, m := range [][6]int{
		{64, 64, 64, 64, 96, 32}, {64, 64, 96, 64, 96, 64}, {0, 128, 160, 64, 96, 0},
		{224, 64, 96, 96, 128, 128}, {192, 96, 128, 96, 128, 128}, {160, 128, 160, 128, 160, 128},
		{96, 128, 192, 160, 192, 128}, {0, 128, 192, 192, 256, 0},
		{352, 192, 320, 160, 224, 128}, {352, 192, 320, 192, 224, 128},
	} {
		c = mixed(c, m[0], m[1], m[2], m[3], m[4], m[5])
	}
	l.dense(c, classes)
	return l
}

// kaggle is the plankton net of MXNet's Kaggle NDSB-1 example, for images of 48×48.
func kaggle() []int {
	var l blocks
	l.dense(3*25, 32)
	l.dense(32*25, 64)
	in := 64
	for _, out := range []int{64, 64, 128, 256, 256} {
		l.dense(in*9, out)
		in = out
	}
	l.dense(in*3*3, 121)
	return l
}

// rnnLSTM is MXNet's word language model: embedding, LSTM layers, projection, not tied.
func rnnLSTM(vocabulary, hidden, layers int) []int {
	l := blocks{vocabulary * hidden}
	for range layers {
		l.recurrent(hidden, hidden, 4)
	}
	l.dense(hidden, vocabulary)
	return l
}

// recurrent adds gates from the input and from the last state: both weights, then both biases.
func (l *blocks) recurrent(in, hidden, gates int) {
	*l = append(*l, in*gates*hidden, hidden*gates*hidden, gates*hidden, gates*hidden)
}

// seq2seq has the sizes of sockeye's WMT tutorial: a bidirectional LSTM encoder of one layer, each direction half as
// wide as the decoder; dense layers that turn its end states into the decoder's two; an LSTM decoder fed with the last
// word and the last attention state; dot attention with a mapped query; a dense layer over state and context.
func seq2seq(vocabulary, embedding, hidden int) []int {
	l := blocks{vocabulary * embedding, vocabulary * embedding} // source, target
	for range 2 {
		l.recurrent(embedding, hidden/2, 4)
	}
	for range 2 {
		l.dense(hidden, hidden)
	}
	l.recurrent(embedding+hidden, hidden, 4)
	l.conv(hidden, hidden, 1)
	l.dense(2*hidden, hidden)
	l.dense(hidden, vocabulary)
	return l
}

// deepSpeech2 is MXNet's speech example without normalisation in the recurrent part: two convolutions over 161
// frequencies, which leave 21, layers of GRUs in both directions, one dense layer.
func deepSpeech2(layers, hidden int) []int {
	var l blocks
	l.conv(1, 32, 11*41)
	l.norm(32)
	l.conv(32, 32, 11*21)
	l.norm(32)
	in := 32 * 21
	for range layers {
		for range 2 {
			l.dense(in, 2*hidden) // reset and update gates
			l.dense(hidden, 2*hidden)
			l.dense(in, hidden) // candidate
			l.dense(hidden, hidden)
		}
		in = 2 * hidden
	}
	l.dense(in, speechAlphabet)
	return l
}

// vgg has five groups of 3×3 convolutions with the given numbers of layers, then three dense layers.
func vgg(layers ...int) []int {
	var l blocks
	in := 3
	for i, out := range []int{64, 128, 256, 512, 512} {
		for range layers[i] {
			l.dense(in*9, out)
			in = out
		}
	}
	l.dense(in*7*7, 4096)
	l.dense(4096, 4096)
	l.dense(4096, 1000)
	return l
}
