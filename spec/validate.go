package spec

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"optimus/internal/jobname"
)

// MaxName is the longest name of a job.
const MaxName = jobname.Max

// MaxBatch bounds the global batch.
const MaxBatch = 1 << 24

// FieldError is one wrong field of a job.
type FieldError struct {
	Field   string // JSON path, such as servers.count
	Value   any
	Allowed string
}

// Error returns "field value: allowed is ...".
func (e *FieldError) Error() string {
	return fmt.Sprintf("%s is %s; allowed: %s", e.Field, quote(e.Value), e.Allowed)
}

// Kind names the class of the error for programs.
func (e *FieldError) Kind() string { return "invalid-argument" }

func quote(v any) string {
	switch v.(type) {
	case string, Mode, Rule, NonFinite, Launch:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(v)
}

// Validate checks the job alone, without looking at files or the registry of
// models. It returns nil or the FieldErrors of all wrong fields, joined.
func (j TrainingJob) Validate() error {
	var c checker
	c.that(jobname.Valid(j.Name), "name", j.Name, jobname.Allowed)
	c.that(j.Workload != "", "workload", j.Workload, "a name that `optimus models` lists")
	c.count("servers", j.Servers)
	c.count("workers", j.Workers)
	c.within("virtual_workers", j.VirtualWorkers, 0, MaxMembers)
	if v := j.VirtualWorkers; v > 0 {
		c.that(j.Workers.Count <= v && j.Workers.Max <= v, "virtual_workers", v, "at least the most workers of the job, or 0 for off")
		c.that(j.Mode == BSP, "virtual_workers", v, "0 unless mode is bsp")
	}
	oneOf(&c, "assignment", j.Assignment, MXNet, PAA)
	oneOf(&c, "mode", j.Mode, BSP, ASP, SSP)
	if j.Mode == SSP {
		c.within("staleness", j.Staleness, 1, 1<<20)
	} else {
		c.that(j.Staleness == 0, "staleness", j.Staleness, "0 unless mode is ssp")
	}
	c.within("batch", j.Batch, 0, MaxBatch)
	c.within("skip_bad", j.SkipBad, 0, math.MaxInt32)
	c.within("overfit", j.Overfit, 0, math.MaxInt32)
	c.within("merges", j.Merges, -1, 1<<20)
	c.within("epochs", j.Epochs, 0, math.MaxInt32)
	c.within("steps", j.Steps, 0, math.MaxInt32)
	c.that(j.MaxTime >= 0, "max_time", j.MaxTime, "a positive duration such as 90s or 2h, or 0 for no limit")
	c.optimizer(j.Optimizer)
	c.real("lr", j.LR, 0, math.Inf(1))
	for i, epochs := range j.LRDrops {
		c.that(epochs >= 1 && (i == 0 || epochs > j.LRDrops[i-1]), "lr_drops", epochs, "epochs from 1 on, each more than the one before")
	}
	c.within("lr_warmup", j.LRWarmup, 0, math.MaxInt32)
	oneOf(&c, "non_finite", j.NonFinite, Skip, Stop)
	c.within("non_finite_limit", j.NonFiniteLimit, 0, math.MaxInt32)
	oneOf(&c, "launch", j.Launch, InProc, Process)
	c.within("checkpoint_every", j.CheckpointEvery, 0, math.MaxInt32)
	c.within("keep", j.Keep, 1, math.MaxInt32)
	return errors.Join(c.errs...)
}

// checker collects what is wrong.
type checker struct{ errs []error }

func (c *checker) that(ok bool, field string, value any, allowed string) {
	if !ok {
		c.errs = append(c.errs, &FieldError{Field: field, Value: value, Allowed: allowed})
	}
}

func (c *checker) within(field string, v, lo, hi int) {
	allowed := fmt.Sprintf("%d to %d", lo, hi)
	if hi == math.MaxInt32 && v < lo {
		allowed = fmt.Sprintf("at least %d", lo)
	}
	c.that(lo <= v && v <= hi, field, v, allowed)
}

// real checks lo <= v < hi; NaN is never allowed.
func (c *checker) real(field string, v, lo, hi float64) {
	allowed := fmt.Sprintf("at least %g and below %g", lo, hi)
	if math.IsInf(hi, 1) {
		allowed = fmt.Sprintf("a finite number, at least %g", lo)
	}
	c.that(lo <= v && v < hi, field, v, allowed)
}

func (c *checker) count(field string, n Count) {
	c.within(field+".count", n.Count, 1, MaxMembers)
	c.within(field+".min", n.Min, 0, MaxMembers)
	c.within(field+".max", n.Max, 0, MaxMembers)
	lo, hi := n.Bounds()
	c.that(lo <= hi, field+".max", n.Max, fmt.Sprintf("at least the minimum, %d", lo))
	if n.Count >= 1 && n.Count <= MaxMembers && lo <= hi {
		c.within(field+".count", n.Count, lo, hi)
	}
}

func (c *checker) optimizer(o Optimizer) {
	c.real("optimizer.momentum", o.Momentum, 0, 1)
	c.real("optimizer.beta1", o.Beta1, 0, 1)
	c.real("optimizer.beta2", o.Beta2, 0, 1)
	c.real("optimizer.epsilon", o.Epsilon, 0, math.Inf(1))
	c.real("optimizer.weight_decay", o.WeightDecay, 0, math.Inf(1))
	c.real("optimizer.clip_norm", o.ClipNorm, 0, math.Inf(1))
}

func oneOf[T ~string](c *checker, field string, v T, allowed ...T) {
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	c.that(slices.Contains(allowed, v), field, v, strings.Join(names, ", "))
}
