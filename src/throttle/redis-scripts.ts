/**
 * The scripts that count in Redis. A script runs alone and as a whole, so that its checks and its charges are one step
 * for all gateways. The clock is that of Redis, so that clocks of gateways do not matter. Needs Redis 5 or later.
 *
 * A counter is a hash: `w` number of the last window that was charged, `c` its count, `p` the count of the window
 * before it. A key expires with the last window that needs it.
 */
import { createHash } from 'node:crypto'
import type { Quota } from './policy.ts'

/** A script, and the name by which Redis keeps it. */
export interface RedisScript {
  readonly text: string
  readonly sha: string
}

/**
 * `bounds(window, ms)`: number, start and end of the window at a time. `window`: length in milliseconds; below 0, the
 * length in calendar months (UTC). Days and months convert by the algorithms of the proleptic Gregorian calendar.
 */
const WINDOWS = `
local floor = math.floor

local function monthOf(ms)
  local z = floor(ms / 86400000) + 719468
  local era = floor(z / 146097)
  local doe = z - era * 146097
  local yoe = floor((doe - floor(doe / 1460) + floor(doe / 36524) - floor(doe / 146096)) / 365)
  local mp = floor((5 * (doe - (365 * yoe + floor(yoe / 4) - floor(yoe / 100))) + 2) / 153)
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  return (year - 1970) * 12 + month - 1
end

local function startOfMonth(number)
  local year = 1970 + floor(number / 12)
  local month = number % 12 + 1
  if month <= 2 then year = year - 1 end
  local era = floor(year / 400)
  local yoe = year - era * 400
  local mp = month > 2 and month - 3 or month + 9
  local doe = yoe * 365 + floor(yoe / 4) - floor(yoe / 100) + floor((153 * mp + 2) / 5)
  return (era * 146097 + doe - 719468) * 86400000
end

local function spanOf(window, number)
  if window > 0 then return number * window, (number + 1) * window end
  return startOfMonth(number * -window), startOfMonth((number + 1) * -window)
end

local function numberAt(window, ms)
  if window > 0 then return floor(ms / window) end
  return floor(monthOf(ms) / -window)
end

local time = redis.call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)

-- A window that is one ahead of the clock is charged on: the clock has gone back a little. One further ahead is void.
local function read(key, window)
  local stored = redis.call('HMGET', key, 'w', 'c', 'p')
  local number = numberAt(window, now)
  local last = tonumber(stored[1]) or -1
  if last == number + 1 then number = last end
  if last == number then return number, tonumber(stored[2]) or 0, tonumber(stored[3]) or 0, true end
  if last == number - 1 then return number, 0, tonumber(stored[2]) or 0, false end
  return number, 0, 0, false
end

local function used(count, previous, sliding, start, finish)
  if not sliding then return count end
  local part = (finish - now) / (finish - start)
  if part > 1 then part = 1 end
  return count + previous * part
end

local function add(key, amount, number, previous, isStored, expires)
  if isStored then return redis.call('HINCRBY', key, 'c', amount) end
  redis.call('HSET', key, 'w', number, 'c', amount, 'p', previous)
  redis.call('PEXPIREAT', key, expires)
  return amount
end
`

/** Arguments of a counter in `ADMIT` and `CHARGE`: window, `1` for a sliding one, limit, amount. */
const EACH = `
local reply = {-1, now}
for i = 1, #KEYS do
  local at = i * 4 - 3
  local window, sliding = tonumber(ARGV[at]), ARGV[at + 1] == '1'
  local limit, amount = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local number, count, previous, isStored = read(KEYS[i], window)
  local start, finish = spanOf(window, number)
`

/**
 * Charges all counters or none; an amount of 0 only checks. Replies with the index of the first counter that refuses,
 * or -1, and the time. For each counter follow what is left, the end of its window, and the window's number.
 */
export const ADMIT = script(`${WINDOWS}
local plans = {}
${EACH}
  local left = floor(limit - used(count, previous, sliding, start, finish))
  if left < 1 and reply[1] < 0 then reply[1] = i - 1 end
  plans[i] = { amount, number, previous, isStored, sliding and 2 * finish - start or finish }
  reply[i * 3], reply[i * 3 + 1], reply[i * 3 + 2] = left > 0 and left or 0, finish, number
end
if reply[1] >= 0 then return reply end
for i = 1, #KEYS do
  local amount, number, previous, isStored, expires = unpack(plans[i])
  if amount > 0 then
    add(KEYS[i], amount, number, previous, isStored, expires)
    reply[i * 3] = reply[i * 3] - amount
  end
end
return reply
`)

/** Charges every counter, whatever is left. Replies as `ADMIT` does. */
export const CHARGE = script(`${WINDOWS}
${EACH}
  count = add(KEYS[i], amount, number, previous, isStored, sliding and 2 * finish - start or finish)
  local left = floor(limit - used(count, previous, sliding, start, finish))
  reply[i * 3], reply[i * 3 + 1], reply[i * 3 + 2] = left > 0 and left or 0, finish, number
end
return reply
`)

/** Takes back amounts. Arguments of a counter: number of the window that was charged, amount. */
export const REFUND = script(`
for i = 1, #KEYS do
  local number, amount = tonumber(ARGV[i * 2 - 1]), tonumber(ARGV[i * 2])
  local last = tonumber(redis.call('HGET', KEYS[i], 'w')) or -1
  local field = last == number and 'c' or last == number + 1 and 'p' or ''
  if field ~= '' then redis.call('HINCRBY', KEYS[i], field, -amount) end
end
return 0
`)

/**
 * Notes that a gateway is there, and replies with the number of gateways. Arguments: id of the gateway; milliseconds
 * after which a gateway that says nothing is gone, or 0 for a gateway that leaves.
 */
export const PRESENCE = script(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lifetime = tonumber(ARGV[2])
if lifetime == 0 then return redis.call('ZREM', KEYS[1], ARGV[1]) end
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - lifetime)
redis.call('PEXPIRE', KEYS[1], lifetime)
return redis.call('ZCARD', KEYS[1])
`)

const MS = { sec: 1000, min: 60_000, hour: 3_600_000, day: 86_400_000 } as const

/** The window of a quota as the scripts read it. */
export function windowArgument({ unit, units }: Quota): string {
  return String(unit === 'month' ? -units : units * MS[unit])
}

function script(text: string): RedisScript {
  return { text, sha: createHash('sha1').update(text).digest('hex') }
}
