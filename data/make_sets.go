package data

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"path/filepath"

	"optimus/data/audio"
)

func writeMR(m *maker) error {
	s, err := GenerateMR(m.n, m.seed)
	if err != nil {
		return err
	}
	return WriteMR(filepath.Join(m.dir, mrFolder), s)
}

func writeCIFAR10(m *maker) error {
	s, err := GenerateCIFAR10(m.n, m.seed)
	if err != nil {
		return err
	}
	return WriteCIFAR10(filepath.Join(m.dir, cifarFolder), s)
}

func writeMNIST(m *maker) error {
	s, err := GenerateMNIST(m.n, m.seed)
	if err != nil {
		return err
	}
	for name, split := range map[string]Split{"train": s.Train, "t10k": s.Valid} {
		p := split.(*pictureSplit).from
		n := len(p.labels)
		if err := m.putIDX(name+"-images-idx3-ubyte.gz", p.pixels, idxImages, n, mnistSide, mnistSide); err != nil {
			return err
		}
		if err := m.putIDX(name+"-labels-idx1-ubyte.gz", p.labels, idxLabels, n); err != nil {
			return err
		}
	}
	return nil
}

func (m *maker) putIDX(name string, content []byte, head ...int) error {
	var b bytes.Buffer
	w := gzip.NewWriter(&b) // into memory: no write fails
	for _, v := range head {
		w.Write(binary.BigEndian.AppendUint32(nil, uint32(v)))
	}
	w.Write(content)
	w.Close()
	return m.put(b.Bytes(), name)
}

func writePTB(m *maker) error {
	for i, text := range sentencesOf(m.n, m.seed) {
		if err := m.put(text, [...]string{ptbTrain, ptbValid}[i]); err != nil {
			return err
		}
	}
	return nil
}

func writeText8(m *maker) error { return m.put(text8Text(m.n, m.seed), text8File) }

func writeWMT17(m *maker) error {
	for i, text := range translations(m.n, m.seed) {
		for side, language := range wmtLanguages() {
			if err := m.put(text[side], [...]string{"train", "newstest2017"}[i]+".tok."+language); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeLibriSpeech makes a folder per speaker, of one chapter, in train-clean and in
// dev-clean.
func writeLibriSpeech(m *maker) error {
	cut := m.n - max(m.n/10, 1)
	lists := map[string]*bytes.Buffer{}
	said, paths := make([]utterance, m.n), make([]string, m.n)
	for i := range said {
		said[i] = newUtterance(i, m.seed)
		part := "train-clean"
		if i >= cut {
			part = "dev-clean"
		}
		speaker := fmt.Sprint(100 + said[i].speaker)
		chapter := filepath.Join(speechFolder, part, speaker, "1", speaker+"-1")
		if lists[chapter] == nil {
			lists[chapter] = &bytes.Buffer{}
		}
		number := fmt.Sprintf("-%04d", bytes.Count(lists[chapter].Bytes(), []byte{'\n'}))
		paths[i] = chapter + number + ".flac"
		fmt.Fprintf(lists[chapter], "%s%s %s\n", filepath.Base(chapter), number, said[i].text)
	}
	for chapter, list := range lists {
		if err := m.put(list.Bytes(), chapter+speechList); err != nil {
			return err
		}
	}
	return inParallel(processors(), m.n, func(i int) error {
		return m.put(audio.EncodeFLAC(soundRate, said[i].samples()), paths[i])
	})
}
