// Package deploy tests what ../../deploy has for operators: that the image is built by a
// command that works and starts what it says, that the Kubernetes manifest is one, strictly
// decoded, whose ports, probes and times fit each other and goodput, and that systemd takes
// the unit.
package deploy
