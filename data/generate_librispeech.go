package data

import (
	"math"
	"strings"

	"optimus/data/audio"
	"optimus/internal/rng"
)

const (
	spokenWords = 40 // of the generated vocabulary
	speakers    = 20
)

// GenerateLibriSpeech makes n recordings, a tenth of them for validation, with the
// shape of [OpenLibriSpeech]'s set. One to three short words are said by one of 20
// speakers, each of a pitch of its own: a letter is a chord of two tones for 60 to 90 ms, a space is silence,
// and all has noise 20 dB below it. The same n and seed always make the same set.
func GenerateLibriSpeech(n int, seed uint64) (*Set, error) {
	if err := checkCount("generate LibriSpeech", n); err != nil {
		return nil, err
	}
	s, said := &speech{}, make([]utterance, n)
	for i := range said {
		said[i] = newUtterance(i, seed)
		letters, err := spellOut(said[i].text)
		if err != nil {
			return nil, err
		}
		s.say(letters, soundFrames(lengthOf(said[i].pace())))
	}
	ids, cut := all(n), n-max(n/10, 1)
	read := func(i int) ([]float32, error) {
		return (&audio.Sound{Info: audio.Info{Bits: 16}, Data: widened(said[i].samples())}).Floats(), nil
	}
	set := newSpeech("LibriSpeech (generated)", s, processors(), read, ids[:cut], ids[cut:])
	set.Generated = true
	return set, nil
}

func widened(samples []int16) []int32 {
	out := make([]int32, len(samples))
	for i, v := range samples {
		out[i] = int32(v)
	}
	return out
}

// utterance is what a speaker says.
type utterance struct {
	text    string
	speaker int
	key     rng.Key
}

func newUtterance(i int, seed uint64) utterance {
	u := utterance{key: rng.NewKey(seed, 's', 'a', 'y', uint64(i))}
	var words []string
	for w := range 1 + u.key.Intn(0, 3) {
		words = append(words, strings.ToUpper(spell(u.key.Intn(uint64(1+w), spokenWords))))
	}
	u.text, u.speaker = strings.Join(words, " "), u.key.Intn(10, speakers)
	return u
}

// silence is how many samples are empty before and behind a text.
const silence = soundRate / 5

// pace returns where each letter ends.
func (u *utterance) pace() []int {
	ends, at := make([]int, len(u.text)), silence
	for i := range ends {
		at += soundRate/1000*60 + u.key.Intn(uint64(20+i), soundRate/1000*30)
		ends[i] = at
	}
	return ends
}

// lengthOf returns how many samples a text of such a pace has.
func lengthOf(ends []int) int { return ends[len(ends)-1] + silence }

// samples says the text.
func (u *utterance) samples() []int16 {
	ends, pitch := u.pace(), 0.97+0.06*(float64(u.speaker)+0.5)/speakers
	sound := make([]float64, lengthOf(ends))
	for i, from := 0, silence; i < len(u.text); i, from = i+1, ends[i] {
		if letter := strings.IndexByte(alphabet, u.text[i]); letter > 0 {
			chord(sound[from:ends[i]], letter, pitch)
		}
	}
	noise := rng.NewKey(uint64(u.key), 'n', 'o', 'i', 's', 'e')
	out := make([]int16, len(sound))
	for i, v := range sound {
		out[i] = int16(math.Round((v + 0.05*(noise.Float64(uint64(i))-0.5)) * (1 << 15)))
	}
	return out
}

// chord is the sound of a letter: two tones, which swell and fade.
func chord(dst []float64, letter int, pitch float64) {
	low, high := 300+90*float64(letter), 3200+150*float64(letter*11%27)
	for i := range dst {
		t := 2 * math.Pi * pitch * float64(i) / soundRate
		edge := min(1, float64(i)/80, float64(len(dst)-i)/80)
		dst[i] = 0.1 * edge * (math.Sin(low*t) + math.Sin(high*t))
	}
}
