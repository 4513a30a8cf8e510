package suggest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	names := []string{"doctor", "plan", "resnet-50", "resnext-110", "rnn-lstm", "naïve"}
	for word, want := range map[string]string{
		"doctor": "doctor", "doctr": "doctor", "dcotor": "doctor", "paln": "plan",
		"resnet50": "resnet-50", "ResNet_50": "resnet-50", "rnnlstm": "rnn-lstm", "naive": "naïve",
		"xyz": "", "": "", "p": "", "pn": "",
	} {
		got, ok := Nearest(word, names)
		if got != want || ok != (want != "") {
			t.Errorf("Nearest(%q) = %q, %v, want %q", word, got, ok, want)
		}
	}
	if got, ok := Nearest("plan", nil); ok {
		t.Errorf("found %q among no words", got)
	}
}

// Nothing of a word of one letter is left after a slip, and the empty word was
// never near anything.
func TestNearestToShortWords(t *testing.T) {
	for _, word := range []string{"", "x"} {
		if got, ok := Nearest(word, []string{"a", "ab", ""}); ok {
			t.Errorf("%q: got %q", word, got)
		}
	}
	if got, ok := Nearest("A", []string{"a"}); got != "a" || !ok {
		t.Errorf("got %q, %v", got, ok)
	}
}

func TestDistance(t *testing.T) {
	tests := []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"kitten", "sitting", 3}, {"vgg16", "vgg-16", 1},
		{"ab", "ba", 1}, {"abcd", "badc", 2},
		{"ca", "abc", 3}, // 2 if letters could be touched twice
		{"äö", "öä", 1},
	}
	for _, tt := range tests {
		if got := distance([]rune(tt.a), []rune(tt.b)); got != tt.want {
			t.Errorf("%q to %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

// Zero for equal words only, symmetric, at least the difference of the lengths
// and at most the longer of them.
func TestDistanceProperties(t *testing.T) {
	word := rapid.SliceOfN(rapid.RuneFrom([]rune("abc-")), 0, 8)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := distance(a, b)
		if d != distance(b, a) || (d == 0) != slices.Equal(a, b) || d > max(len(a), len(b)) || d < max(len(a)-len(b), len(b)-len(a)) {
			t.Fatalf("distance(%q, %q) = %d, the other way %d", string(a), string(b), d, distance(b, a))
		}
	})
}

func TestFind(t *testing.T) {
	unknown := errors.New("unknown tool")
	many := strings.Fields(strings.Repeat("x ", few+1))
	for _, tt := range []struct {
		name  string
		all   []string
		found bool
		want  string
	}{
		{"saw", []string{"hammer", "saw"}, true, ""},
		{"hamer", []string{"hammer", "saw"}, false, `unknown tool "hamer"; did you mean "hammer"?`},
		{"drill", []string{"hammer", "saw"}, false, `unknown tool "drill"; known: hammer, saw`},
		{"drill", many, false, `unknown tool "drill"`},
		{"drill", nil, false, `unknown tool "drill"`},
	} {
		got, err := Find(tt.name, tt.all, func(s string) string { return s }, unknown)
		if tt.found {
			if got != tt.name || err != nil {
				t.Errorf("%q: %q, %v", tt.name, got, err)
			}
		} else if got != "" || !errors.Is(err, unknown) || err.Error() != tt.want {
			t.Errorf("%q: %q, error %v, want %s", tt.name, got, err, tt.want)
		}
	}
}

func ExampleNearest() {
	for _, typed := range []string{"resnet50", "bert"} {
		near, ok := Nearest(typed, []string{"resnext-110", "resnet-50"})
		fmt.Printf("%q %v\n", near, ok)
	}
	// Output:
	// "resnet-50" true
	// "" false
}
