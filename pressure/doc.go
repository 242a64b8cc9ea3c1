// Package pressure has signals that say how short of processors a process is, as an extra
// brake on a limit that adapts.
//
//	l := goodput.New(goodput.Config{
//		Limit:     limit.Auto{},
//		Objective: 200 * time.Millisecond,
//		Pressure:  pressure.Largest(new(pressure.CGroup), new(pressure.Scheduler)),
//	})
//
// A level of 1 is what somebody said is too much, 0 is none. From 0.8 on the law does not
// raise the limit, and beyond 1 it lowers it. Until then a signal does nothing.
//
// # What they see
//
//   - A [Scheduler] sees goroutines that could run and wait for a processor, in this
//     process. It works on every system, and costs about a microsecond per window.
//   - A [CGroup] sees the CPU quota of a container: in how many of its periods everything
//     stood still because it was spent. On Linux, with cgroups of version 1 or 2.
//
// Share one signal between all the limiters of a process, as in the example: it is read
// once for all of them, and it is about the process and not about one limiter.
//
// # Never a precondition
//
// A service that waits for a database is overloaded at 10 % CPU. Limiters that shed only
// beyond so much CPU never see that, and those that need a file of the kernel were off, or
// hung, where the file was missing. Here the law finds an overload of either kind in the
// service times. A signal is beside that: where it has nothing to say, the limiter
// goes on without it, and Stats.PressureAbsent, Explain and String say why.
//
// # When not to use it
//
//   - The service waits for I/O most of its time. Its processors are not what limits it,
//     and what a signal sees is somebody else's doing: a batch in the same process, a
//     collection of garbage. Then a brake refuses work that could have been served.
//   - Throughput is worth more than latency. A brake leaves a part of the processors
//     unused, so that the rest is not late: work that is throttled in fewer than a quarter
//     of its periods does not use its whole quota.
//   - The limit is fixed. It does not move; the level is shown, and nothing else.
//
// The load of the host is no signal here, on purpose. A container with half a processor on
// a host with 64 is throttled all the time while the host is idle, and where the host
// is busy it may have all that it was granted. So what is used is compared with the quota.
// That of the threads of a host which wait, /proc/pressure/cpu, is no signal either: it is
// the share of time in which at least one of them did, which in a process with
// more threads than processors is nearly always, however short each wait is.
package pressure
