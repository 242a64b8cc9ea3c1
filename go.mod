module github.com/goodput/goodput

go 1.25.0
