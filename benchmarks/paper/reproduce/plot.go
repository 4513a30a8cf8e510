package reproduce

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// series is one curve, or the bars of one colour.
type series struct {
	name string
	x, y []float64 // no x for bars
	dash bool      // the paper's: drawn in the colour of the series before it, but empty or dashed
}

// palette gives each series its colour.
func palette(all []series) []color.Color {
	var out []color.Color
	n := -1
	for _, s := range all {
		if !s.dash || n < 0 {
			n++
		}
		out = append(out, plotutil.Color(n))
	}
	return out
}

// headroom leaves room for a legend of n lines above what is drawn.
func headroom(p *plot.Plot, n int) { p.Y.Max += (p.Y.Max - p.Y.Min) * .05 * float64(n) }

// bars draws groups of bars, one for each series.
func bars(title, unit string, groups []string, all []series) func(string) error {
	return func(path string) error {
		p := plot.New()
		p.Title.Text, p.Y.Label.Text, p.Legend.Top = title, unit, true
		const width = 12 // points
		colors := palette(all)
		for i, s := range all {
			b, err := plotter.NewBarChart(plotter.Values(s.y), vg.Points(width))
			if err != nil {
				return err
			}
			b.Color = colors[i]
			b.Offset = vg.Points(width * (float64(i) - float64(len(all)-1)/2))
			if s.dash {
				b.LineStyle.Color, b.Color = colors[i], color.White
			}
			p.Add(b)
			p.Legend.Add(s.name, b)
		}
		p.NominalX(groups...)
		p.X.Min, p.X.Max = -.6, float64(len(groups))-.4
		headroom(p, len(all))
		return p.Save(vg.Points(float64(120+len(groups)*(width*len(all)+30))), vg.Points(300), path)
	}
}

// lines draws curves.
func lines(title, x, y string, all []series) func(string) error {
	return func(path string) error {
		p := plot.New()
		p.Title.Text, p.X.Label.Text, p.Y.Label.Text, p.Legend.Top = title, x, y, true
		colors := palette(all)
		for i, s := range all {
			xy := make(plotter.XYs, len(s.y))
			for k := range xy {
				xy[k].X, xy[k].Y = s.x[k], s.y[k]
			}
			l, err := plotter.NewLine(xy)
			if err != nil {
				return err
			}
			l.Color = colors[i]
			if s.dash {
				l.Dashes = plotutil.Dashes(1)
			}
			p.Add(l)
			p.Legend.Add(s.name, l)
		}
		headroom(p, len(all))
		return p.Save(vg.Points(480), vg.Points(320), path)
	}
}
