// Package plots draws the charts that the program and the benchmarks write as files:
// curves over an axis, and groups of bars side by side. It is a thin layer over
// gonum/plot that fixes size, colours and fonts, so that all charts look alike.
//
//	c := plots.Chart{Title: "Fig 12", X: "nodes", Y: "s", LogX: true,
//		Curves: []plots.Curve{{Name: "4000 jobs", X: nodes, Y: seconds}}}
//	err := c.Save(dir, "fig12") // dir/fig12.png and dir/fig12.svg
package plots

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Chart is one drawing: curves, or bars if there are any.
type Chart struct {
	Title, X, Y string
	LogX, LogY  bool // axes of powers of ten; values must be positive
	Curves      []Curve

	// Groups are the names below groups of bars, and Bars has a bar for each group in
	// each of its series.
	Groups []string
	Bars   []Bars
}

// Curve is a line through points. Values that are not finite leave a gap.
type Curve struct {
	Name   string // in the legend; empty for none
	X, Y   []float64
	Step   bool // the value holds until the next point
	Dashed bool
	Points bool // points alone, without a line
}

// Bars are the bars of one colour.
type Bars struct {
	Name   string
	Hollow bool      // outlines, as for values to compare with
	Values []float64 // by group
	Error  []float64 // half the length of an error bar, by group; nil for none
}

// The size of a chart.
const (
	width  = 16 * vg.Centimeter
	height = 10 * vg.Centimeter
)

// Save writes the chart as NAME.png and NAME.svg into a folder, which is made if it is
// not there.
func (c Chart) Save(dir, name string) error {
	d, err := c.draw()
	if err != nil {
		return fmt.Errorf("draw %s: %w", name, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, format := range []string{"png", "svg"} {
		if err := d.save(filepath.Join(dir, name+"."+format), format); err != nil {
			return err
		}
	}
	return nil
}

// drawing is a plot with its legend beside it, where it covers nothing.
type drawing struct {
	*plot.Plot
	legend plot.Legend
	named  int // entries of the legend
}

func (d *drawing) name(name string, t plot.Thumbnailer) {
	if name != "" {
		d.legend.Add(name, t)
		d.named++
	}
}

func (d *drawing) save(path, format string) error {
	canvas, err := draw.NewFormattedCanvas(width, height, format)
	if err != nil {
		return err
	}
	const edge = 8 // points
	area := draw.Crop(draw.New(canvas), edge, -edge, edge, -edge)
	left := area
	if d.named > 0 {
		wide := d.legend.Rectangle(area).Size().X
		left = draw.Crop(area, 0, -wide-edge, 0, 0)
		d.legend.Draw(draw.Crop(area, area.Size().X-wide, 0, 0, -2*edge))
	}
	d.Draw(left)
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = canvas.WriteTo(f)
	return errors.Join(err, f.Close())
}

func (c Chart) draw() (*drawing, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.Title, c.X, c.Y
	p.Title.Padding = vg.Points(6)
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks{}, ticks{}
	if c.LogX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if c.LogY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	p.Add(plotter.NewGrid())
	d := &drawing{Plot: p, legend: plot.NewLegend()}
	d.legend.Top, d.legend.Padding = true, vg.Points(3)
	for i, l := range c.Curves {
		if err := l.add(d, i, c.LogX, c.LogY); err != nil {
			return nil, err
		}
	}
	for i, b := range c.Bars {
		if err := b.add(d, i, len(c.Bars), len(c.Groups)); err != nil {
			return nil, err
		}
	}
	if len(c.Bars) > 0 {
		p.NominalX(c.Groups...)
		p.X.Min, p.X.Max, p.Y.Min = -0.5, float64(len(c.Groups))-0.5, min(0, p.Y.Min)
	}
	return d, nil
}

// colour returns one of eight that are told apart by most people: Okabe and Ito's, but for their yellow.
func colour(i int) color.Color {
	all := []color.RGBA{
		{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255},
		{230, 159, 0, 255}, {86, 180, 233, 255}, {0, 0, 0, 255}, {150, 150, 150, 255},
	}
	return all[i%len(all)]
}

// add draws a curve, in pieces where points are missing.
func (l Curve) add(d *drawing, number int, logX, logY bool) error {
	if len(l.X) != len(l.Y) {
		return fmt.Errorf("curve %q has %d values of x and %d of y", l.Name, len(l.X), len(l.Y))
	}
	named := false
	var piece plotter.XYs
	flush := func() error {
		if len(piece) == 0 {
			return nil
		}
		drawn, err := l.piece(d.Plot, piece, colour(number))
		if err == nil && !named {
			d.name(l.Name, drawn)
			named = true
		}
		piece = nil
		return err
	}
	for i, x := range l.X {
		y := l.Y[i]
		bad := math.IsNaN(x+y) || math.IsInf(x+y, 0) || logX && x <= 0 || logY && y <= 0
		if !bad {
			piece = append(piece, plotter.XY{X: x, Y: y})
			continue
		}
		if err := flush(); err != nil {
			return err
		}
	}
	return flush()
}

func (l Curve) piece(p *plot.Plot, points plotter.XYs, c color.Color) (plot.Thumbnailer, error) {
	if l.Points {
		s, err := plotter.NewScatter(points)
		if err != nil {
			return nil, err
		}
		s.Color, s.Radius = c, vg.Points(2)
		p.Add(s)
		return s, nil
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return nil, err
	}
	line.Color, line.Width = c, vg.Points(1.5)
	if l.Step {
		line.StepStyle = plotter.PostStep
	}
	if l.Dashed {
		line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	}
	p.Add(line)
	return line, nil
}

// add draws the bars of one series beside those of the others.
func (b Bars) add(d *drawing, number, series, groups int) error {
	if len(b.Values) != groups || b.Error != nil && len(b.Error) != groups {
		return fmt.Errorf("bars %q have %d values and %d errors for %d groups", b.Name, len(b.Values), len(b.Error), groups)
	}
	const share = 0.75 // of the width for the bars of a group
	wide := width * share / vg.Length(max(groups, 1)*(series+1))
	offset := wide * (vg.Length(number) - vg.Length(series-1)/2)
	bars, err := plotter.NewBarChart(plotter.Values(b.Values), wide)
	if err != nil {
		return err
	}
	bars.Color, bars.LineStyle.Width, bars.Offset = colour(number), 0, offset
	if b.Hollow {
		bars.Color, bars.LineStyle.Color, bars.LineStyle.Width = color.White, colour(number), vg.Points(1)
	}
	d.Add(bars)
	d.name(b.Name, bars)
	if b.Error == nil {
		return nil
	}
	return b.addErrors(d.Plot, offset)
}

// addErrors draws error bars in the middle of the bars. They shift by a length of the
// page, which the axis does not know: they are drawn by a plotter of their own.
func (b Bars) addErrors(p *plot.Plot, offset vg.Length) error {
	points := errorPoints{values: b.Values, errors: b.Error}
	bars, err := plotter.NewYErrorBars(points)
	if err != nil {
		return err
	}
	bars.Width = vg.Points(1)
	p.Add(shifted{bars, offset})
	return nil
}
