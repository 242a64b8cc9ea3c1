// Package dashboard is the page on the admin listener: what limiters do, live, and why.
//
// It is embedded, asks nobody outside, and has no build step: page.html, page.css and page.js
// are what the browser gets. The page listens to /api/v1/events and shows ticks of package live.
package dashboard
