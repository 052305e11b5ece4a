// Package actors brings agents to life.
package actors
