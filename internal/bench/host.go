package bench

import (
	"context"
	"fmt"

	"placer/placer/problem"
	"placer/plan"
	"placer/sim"
)

// Host is what an experiment has of the world around it.
type Host struct {
	Clock  func() float64                // seconds since a moment that does not change
	Thread func() float64                // processor seconds of the calling thread
	Log    func(format string, a ...any) // takes a line of progress
}

// ConfigError is a setting that cannot be meant.
type ConfigError struct{ Err error }

func (c ConfigError) Error() string { return c.Err.Error() }

func (c ConfigError) Unwrap() error { return c.Err }

// ConfigErrorf returns a ConfigError.
func ConfigErrorf(format string, a ...any) error { return ConfigError{fmt.Errorf(format, a...)} }

// Interrupted is an experiment that was stopped, with what its caller may do.
type Interrupted struct{ Message string }

func (i Interrupted) Error() string { return i.Message }

// Unwrap makes it the end of a context.
func (Interrupted) Unwrap() error { return context.Canceled }

// CheckOptions reports the first name that does not exist.
func CheckOptions(o *problem.Options) error {
	_, err := problem.ParseScheduler(string(o.Scheduler))
	if err == nil {
		_, err = plan.ParseObjective(string(o.Objective.Normal()))
	}
	if err == nil && o.Contention != "" {
		_, err = sim.ParseContention(o.Contention)
	}
	if err != nil {
		return ConfigError{err}
	}
	return nil
}
