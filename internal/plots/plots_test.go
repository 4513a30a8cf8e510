package plots_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"optimus/internal/plots"
)

// Charts become a picture that shows something, and text that says what.
func TestSave(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	for name, c := range map[string]plots.Chart{
		"curves": {Title: "A title", X: "nodes", Y: "seconds", LogX: true, LogY: true, Curves: []plots.Curve{
			{Name: "first one", X: []float64{1, 10, 100, 1000}, Y: []float64{1, 0, math.NaN(), 5}},
			{Name: "second one", X: []float64{1, 10}, Y: []float64{2, 3}, Step: true, Dashed: true},
			{Name: "third one", X: []float64{1, 10}, Y: []float64{2, 30}, Points: true},
		}},
		"bars": {Title: "A title", Groups: []string{"JCT", "makespan"}, Bars: []plots.Bars{
			{Name: "first one", Values: []float64{1, 1.2}, Error: []float64{.1, .2}},
			{Name: "second one", Values: []float64{1.7, 2.4}, Hollow: true},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.Save(dir, name); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(filepath.Join(dir, name+".png"))
			if err != nil {
				t.Fatal(err)
			}
			picture, err := png.Decode(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			colours := map[any]int{}
			for y := range picture.Bounds().Dy() {
				for x := range picture.Bounds().Dx() {
					colours[picture.At(x, y)]++
				}
			}
			if picture.Bounds().Dx() < 300 || len(colours) < 10 {
				t.Errorf("picture of %v with %d colours", picture.Bounds(), len(colours))
			}
			text := words(t, filepath.Join(dir, name+".svg"))
			for _, want := range []string{"A title", "first one", "second one"} {
				if !strings.Contains(text, want) {
					t.Errorf("the drawing does not say %q but %q", want, text)
				}
			}
		})
	}
}

// words returns the text of an SVG file, which must be well-formed.
func words(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var text strings.Builder
	for d := xml.NewDecoder(f); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return text.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := token.(xml.CharData); ok {
			text.Write(c)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]plots.Chart{
		"curve": {Curves: []plots.Curve{{X: []float64{1}, Y: []float64{1, 2}}}},
		"bars":  {Groups: []string{"a"}, Bars: []plots.Bars{{Values: []float64{1, 2}}}},
		"error": {Groups: []string{"a"}, Bars: []plots.Bars{{Values: []float64{1}, Error: []float64{}}}},
	} {
		if err := c.Save(t.TempDir(), name); err == nil || !strings.Contains(err.Error(), "draw "+name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{0, 1, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{0, 2.6, "0.0 0.5 1.0 1.5 2.0 2.5"},
		{-3, 40000, "0 10000 20000 30000 40000"},
		{0.0071, 0.0075, "0.0071 0.0072 0.0073 0.0074 0.0075"},
		{1e6, 5e6, "1e+06 2e+06 3e+06 4e+06 5e+06"},
		{5, 5, "5"},
	} {
		var got []string
		for _, tick := range plots.Ticks(c.low, c.high) {
			got = append(got, tick.Label)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%v to %v: %s, want %s", c.low, c.high, s, c.want)
		}
	}
}
