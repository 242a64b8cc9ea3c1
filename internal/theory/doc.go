// Package theory holds what is known about queues without simulating them: the
// closed forms of queueing theory, and the ceilings above which no policy can
// go. The simulator prints them beside its results, plan computes with them, and
// the tests of both compare with them.
//
// Times are in seconds, rates per second, loads in shares of the capacity (1 is
// all of it). The clairvoyant bound alone counts in time.Duration, since it
// compares times exactly.
//
// An argument that means nothing (a negative rate, a percentile of 2, no
// server) is a mistake of the caller and panics. A queue that grows without
// bound is an answer: its mean wait is +Inf and the probability of any wait is
// 1. No function returns NaN.
package theory

import (
	"fmt"
	"math"
)

// The checks of arguments. A comparison with NaN is false, so NaN is
// refused too. What is wrong is put into words only when it is.

func needCount(what string, n, least int) {
	if n < least {
		panic(fmt.Sprintf("theory: %s is %d: %d or more is allowed", what, n, least))
	}
}

func needTime(what string, v float64) {
	if !(v >= 0 && v <= math.MaxFloat64) {
		panic(fmt.Sprintf("theory: %s is %v: finite and not negative is allowed", what, v))
	}
}

func needAbove(what string, v float64) {
	if !(v > 0 && v <= math.MaxFloat64) {
		panic(fmt.Sprintf("theory: %s is %v: finite and above 0 is allowed", what, v))
	}
}

func needShare(what string, v float64) {
	if !(v >= 0 && v <= 1) {
		panic(fmt.Sprintf("theory: %s is %v: 0 to 1 is allowed", what, v))
	}
}

// needLoad keeps the load, and with it 1 - loss, within what float64 can tell
// from 0: at a billion times the capacity 7 figures are left.
func needLoad(load float64) {
	if !(load >= 0 && load <= 1e9) {
		panic(fmt.Sprintf("theory: the load is %v: 0 to 1e9 times the capacity is allowed", load))
	}
}

// needNumber refuses a time that is NaN; before 0 and for ever are times.
func needNumber(t float64) {
	if math.IsNaN(t) {
		panic("theory: the time is NaN")
	}
}

// quantile returns the smallest t >= 0 with tail(t) <= 1 - q, for a tail that
// never rises, to 12 figures. scale is a first guess above 0. It returns +Inf
// for q = 1.
func quantile(tail func(t float64) float64, q, scale float64) float64 {
	needShare("the quantile", q)
	miss := 1 - q
	switch {
	case miss == 0:
		return math.Inf(1)
	case tail(0) <= miss:
		return 0
	}
	lo, hi := 0.0, scale
	for tail(hi) > miss {
		lo, hi = hi, 2*hi
	}
	for hi-lo > 1e-12*hi {
		mid := lo + (hi-lo)/2
		if mid <= lo || mid >= hi {
			break
		}
		if tail(mid) > miss {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}
