package data

import (
	"math"
	"strings"

	"optimus/internal/rng"
)

const spokenWords = 40 // of the generated vocabulary

// GenerateLibriSpeech makes n recordings, a tenth of them for validation, with the
// shape of [OpenLibriSpeech]'s set. One to three short words are said by a speaker of
// some pitch: a letter is a chord of two tones for 60 to 90 ms, a space is silence,
// and all has noise 20 dB below it. The same n and seed always make the same set.
func GenerateLibriSpeech(n int, seed uint64) (*Set, error) {
	if err := checkCount("generate LibriSpeech", n); err != nil {
		return nil, err
	}
	s, texts := &speech{}, make([]string, n)
	key := func(i int) rng.Key { return rng.NewKey(seed, 's', 'a', 'y', uint64(i)) }
	for i := range n {
		var words []string
		for w := range 1 + key(i).Intn(0, 3) {
			words = append(words, strings.ToUpper(spell(key(i).Intn(uint64(1+w), spokenWords))))
		}
		texts[i] = strings.Join(words, " ")
		if err := s.say(texts[i]); err != nil {
			return nil, err
		}
		s.frames = append(s.frames, int32(soundFrames(lengthOf(pace(texts[i], key(i))))))
	}
	cut := int32(n - max(n/10, 1))
	var train, valid []int32
	for i := range int32(n) {
		if i < cut {
			train = append(train, i)
		} else {
			valid = append(valid, i)
		}
	}
	set := newSpeech("LibriSpeech (generated)", s, func(i int) ([]float32, error) {
		return utter(texts[i], key(i)), nil
	}, train, valid)
	set.Generated = true
	return set, nil
}

// silence is how many samples are empty before and behind a text.
const silence = soundRate / 5

// pace returns where each letter of a text ends.
func pace(text string, key rng.Key) []int {
	ends, at := make([]int, len(text)), silence
	for i := range ends {
		at += soundRate/1000*60 + key.Intn(uint64(20+i), soundRate/1000*30)
		ends[i] = at
	}
	return ends
}

// lengthOf returns how many samples a text of such a pace has.
func lengthOf(ends []int) int { return ends[len(ends)-1] + silence }

// utter says a text.
func utter(text string, key rng.Key) []float32 {
	ends, pitch := pace(text, key), 0.97+0.06*key.Float64(10)
	samples := make([]float32, lengthOf(ends))
	for i, from := 0, silence; i < len(text); i, from = i+1, ends[i] {
		if letter := strings.IndexByte(alphabet, text[i]); letter > 0 {
			chord(samples[from:ends[i]], letter, pitch)
		}
	}
	noise := rng.NewKey(uint64(key), 'n', 'o', 'i', 's', 'e')
	for i := range samples {
		samples[i] += float32(0.05 * (noise.Float64(uint64(i)) - 0.5))
	}
	return samples
}

// chord is the sound of a letter: two tones, which swell and fade.
func chord(dst []float32, letter int, pitch float64) {
	low, high := 300+90*float64(letter), 3200+150*float64(letter*11%27)
	for i := range dst {
		t := 2 * math.Pi * pitch * float64(i) / soundRate
		edge := min(1, float64(i)/80, float64(len(dst)-i)/80)
		dst[i] = float32(0.1 * edge * (math.Sin(low*t) + math.Sin(high*t)))
	}
}
