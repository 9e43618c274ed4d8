/** The scripts of shared counters against a model that keeps every charge. Redis is real; the test sets the clock. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createClient } from '@redis/client'
import type { Quota, TimeUnit } from '../../src/throttle/policy.ts'
import { ADMIT, CHARGE, REFUND, type RedisScript, windowArgument } from '../../src/throttle/redis-scripts.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'
import { RedisServer, WITHOUT_REDIS } from '../harness/redis-server.ts'

const skip = WITHOUT_REDIS || false
const UNIT_MS = { sec: 1000, min: 60_000, hour: 3_600_000, day: 86_400_000 } as const
const STEPS = IS_LONG ? 200_000 : 8000

let redis: RedisServer
let client: { sendCommand(args: readonly string[]): Promise<unknown>; close(): Promise<void> }

before(async () => {
  if (skip !== false) return
  redis = await RedisServer.start()
  const connected = createClient({ socket: { host: '127.0.0.1', port: redis.port }, RESP: 2 })
  await connected.connect()
  client = {
    sendCommand: args => connected.sendCommand([...args]),
    close: async () => connected.close(),
  }
})

after(async () => {
  if (skip !== false) return
  await client.close()
  await redis.remove()
})

/** Runs a script whose clock shows `ms`. */
async function at(ms: number, script: RedisScript, keys: readonly string[], rest: readonly string[]): Promise<unknown> {
  const text = script.text.replace("redis.call('TIME')", '{ARGV[#ARGV - 1], ARGV[#ARGV]}')
  const time = [String(Math.floor(ms / 1000)), String((ms % 1000) * 1000)]
  return client.sendCommand(['EVAL', text, String(keys.length), ...keys, ...rest, ...time])
}

/** Number, start and end of a window, from the calendar of JavaScript. */
function windowAt({ unit, units }: Quota, ms: number, ahead = 0): readonly [number, number, number] {
  if (unit === 'month') {
    const date = new Date(ms)
    const number = Math.floor(((date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth()) / units) + ahead
    return [number, Date.UTC(1970, number * units), Date.UTC(1970, (number + 1) * units)]
  }
  const length = UNIT_MS[unit] * units
  const number = Math.floor(ms / length) + ahead
  return [number, number * length, (number + 1) * length]
}

/** One counter: every charge by the number of its window. */
class ModelCounter {
  readonly key: string
  readonly quota: Quota
  readonly #charges = new Map<number, number>()
  #last = -1

  constructor(key: string, quota: Quota) {
    this.key = key
    this.quota = quota
  }

  /** What is left, the end and the number of the window. */
  look(ms: number): readonly [number, number, number] {
    const [number, start, end] = windowAt(this.quota, ms, this.#ahead(ms))
    // A clock that has gone back by more than a window makes later windows void, and with them what they knew.
    const isVoid = number < this.#last
    let used = isVoid ? 0 : (this.#charges.get(number) ?? 0)
    if (this.quota.window === 'sliding' && !isVoid) {
      used += (this.#charges.get(number - 1) ?? 0) * Math.min(1, (end - ms) / (end - start))
    }
    return [Math.max(0, Math.floor(this.quota.limit - used)), end, number]
  }

  charge(ms: number, amount: number): void {
    const [number] = windowAt(this.quota, ms, this.#ahead(ms))
    if (number < this.#last) this.#charges.clear()
    this.#last = number
    this.#charges.set(number, (this.#charges.get(number) ?? 0) + amount)
  }

  refund(number: number): void {
    if (number === this.#last || number === this.#last - 1) {
      this.#charges.set(number, (this.#charges.get(number) ?? 0) - 1)
    }
  }

  /** 1 where the clock has gone back into the window before the last charge. */
  #ahead(ms: number): number {
    return windowAt(this.quota, ms)[0] + 1 === this.#last ? 1 : 0
  }
}

function limitOf({ quota }: ModelCounter): readonly string[] {
  return [windowArgument(quota), quota.window === 'sliding' ? '1' : '0', String(quota.limit)]
}

function randomCounters(random: Random, run: number): readonly ModelCounter[] {
  return Array.from({ length: 8 }, (_, index) => {
    const unit: TimeUnit = random.pick(['sec', 'min', 'hour', 'day', 'month'])
    const window = random.once(3) ? ('sliding' as const) : ('tumbling' as const)
    const quota: Quota = { type: 'requests', limit: random.between(1, 20), unit, units: random.between(1, 5), window }
    return new ModelCounter(`model:${run}:${index}`, quota)
  })
}

/** Runs random operations on Redis and on the model, and keeps what the model expects of each reply. */
class Run {
  readonly replies: Promise<unknown>[] = []
  readonly expected: unknown[] = []
  #counters: readonly ModelCounter[] = []
  #admitted: readonly ModelCounter[] = []
  #windows: readonly number[] = []
  #ms = 0

  step(random: Random): void {
    if (random.once(400) || this.replies.length === 0) this.#begin(random)
    this.#moveClock(random)
    const counters = this.#counters.filter(() => random.once(2))
    const operation = random.below(8)
    if (operation === 0) this.#charge(counters, random.between(1, 5))
    else if (operation === 1 && this.#admitted.length > 0) this.#refund()
    else this.#admit(counters)
  }

  /** Keys expire by the real clock of Redis, so windows stay ahead of it. */
  #begin(random: Random): void {
    this.#counters = randomCounters(random, this.replies.length)
    this.#ms = Date.UTC(2040 + random.below(400), random.below(12), random.between(1, 31), random.below(24))
    this.#admitted = []
  }

  #moveClock(random: Random): void {
    const [, start, end] = windowAt(random.pick(this.#counters).quota, this.#ms)
    if (random.once(4)) this.#ms += random.below(Math.ceil((end - start) * 1.5))
    else if (random.once(60)) this.#ms -= random.below(Math.ceil((end - start) * 2.5))
  }

  #send(script: RedisScript, counters: readonly ModelCounter[], rest: readonly string[], expected: unknown): void {
    const keys = counters.map(({ key }) => key)
    this.replies.push(at(this.#ms, script, keys, rest))
    this.expected.push(expected)
  }

  #charge(counters: readonly ModelCounter[], amount: number): void {
    const rest = counters.flatMap(counter => [...limitOf(counter), String(amount)])
    const looks = counters.flatMap(counter => {
      counter.charge(this.#ms, amount)
      return counter.look(this.#ms)
    })
    this.#send(CHARGE, counters, rest, [-1, this.#ms, ...looks])
  }

  #refund(): void {
    const rest = this.#windows.flatMap(number => [String(number), '1'])
    for (const [index, counter] of this.#admitted.entries()) counter.refund(this.#windows[index]!)
    this.#send(REFUND, this.#admitted, rest, 0)
    this.#admitted = []
  }

  #admit(counters: readonly ModelCounter[]): void {
    const rest = counters.flatMap(counter => [...limitOf(counter), '1'])
    const looks = counters.map(counter => counter.look(this.#ms))
    const refusedBy = looks.findIndex(([left]) => left < 1)
    const isAdmitted = refusedBy < 0
    if (isAdmitted) {
      for (const counter of counters) counter.charge(this.#ms, 1)
      this.#admitted = counters
      this.#windows = looks.map(([, , number]) => number)
    }
    const each = looks.flatMap(([left, ...ends]) => [isAdmitted ? left - 1 : left, ...ends])
    this.#send(ADMIT, counters, rest, [refusedBy, this.#ms, ...each])
  }
}

test('admissions, charges and refunds are those of a model, over every unit and a clock that jumps', {
  skip,
}, async () => {
  const random = new Random(SEED)
  const run = new Run()
  for (let step = 0; step < STEPS; step++) run.step(random)
  const found = await Promise.all(run.replies)
  for (const [step, reply] of found.entries()) {
    assert.deepEqual(reply, run.expected[step], `step ${step}, SLUICE_SEED=${SEED}`)
  }
  const admitted = found.filter(reply => Array.isArray(reply) && reply[0] === -1).length
  assert.ok(admitted > STEPS / 10 && admitted < STEPS * 0.9, `${admitted} of ${STEPS} admitted: limits are not tested`)
})

const MONTHS: readonly (readonly [string, number, number, string, string])[] = [
  ['a leap day', 1, Date.UTC(2028, 1, 29, 23, 59, 59, 999), '2028-02-01', '2028-03-01'],
  ['the last day of a century that is no leap year', 1, Date.UTC(2100, 1, 28, 12), '2100-02-01', '2100-03-01'],
  ['the first moment of a year', 1, Date.UTC(2027, 0, 1), '2027-01-01', '2027-02-01'],
  ['a quarter', 3, Date.UTC(2026, 10, 22), '2026-10-01', '2027-01-01'],
  ['five months, counted from 1970', 5, Date.UTC(2026, 10, 22), '2026-09-01', '2027-02-01'],
]

for (const [title, units, ms, start, end] of MONTHS) {
  test(`a window of calendar months: ${title} lies within ${start} and ${end}`, { skip }, async () => {
    const quota: Quota = { type: 'requests', limit: 1, unit: 'month', units, window: 'tumbling' }
    const reply = await at(ms, ADMIT, [`month:${title}`], [windowArgument(quota), '0', '1', '0'])
    const [, from, to] = windowAt(quota, ms)
    assert.deepEqual(
      [new Date(from).toISOString(), new Date(to).toISOString()],
      [start, end].map(day => `${day}T00:00:00.000Z`),
    )
    assert.equal((reply as readonly number[])[3], to)
  })
}

test('a key expires with the last window that needs it', { skip }, async () => {
  const ms = Date.now()
  const hour: Quota = { type: 'requests', limit: 1, unit: 'hour', units: 1, window: 'tumbling' }
  const [, start, end] = windowAt(hour, ms)
  await at(ms, ADMIT, ['tumbling'], [windowArgument(hour), '0', '1', '1'])
  await at(ms, ADMIT, ['sliding'], [windowArgument(hour), '1', '1', '1'])
  const expires = await Promise.all(['tumbling', 'sliding'].map(key => client.sendCommand(['PEXPIRETIME', key])))
  assert.deepEqual(expires, [end, end + (end - start)])
})
