-- Counts answers by who gave them: 2xx, goodput's refusals, anything else.
-- Each thread of wrk has its own globals; done() adds them up.

local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

function init()
  ok, refused, foreign = 0, 0, 0
end

function response(status, headers)
  if status >= 200 and status < 300 then
    ok = ok + 1
  elseif status == 503 and headers["Goodput-Rejected"] and headers["Retry-After"] then
    refused = refused + 1
  else
    foreign = foreign + 1
  end
end

function done(summary, latency)
  local sum = { ok = 0, refused = 0, foreign = 0 }
  for _, thread in ipairs(threads) do
    for name, n in pairs(sum) do
      sum[name] = n + thread:get(name)
    end
  end
  local e = summary.errors
  io.write(string.format("counted ok=%d refused=%d foreign=%d broken=%d microseconds=%d\n",
    sum.ok, sum.refused, sum.foreign, e.connect + e.read + e.write + e.timeout, summary.duration))
end
