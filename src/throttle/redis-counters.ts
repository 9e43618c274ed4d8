/** Counters that all gateways of one Redis share, exact over all of them. One object per reactor. */
import { LRUCache } from 'lru-cache'
import { growingTo } from '../runtime/lru-options.ts'
import { createHash } from 'node:crypto'
import { METRIC } from '../observe/metrics.ts'
import type { Quota } from './policy.ts'
import { type RedisAddress, RedisConnection } from './redis-connection.ts'
import { ADMIT, CHARGE, PRESENCE, type RedisScript, REFUND, windowArgument } from './redis-scripts.ts'
import type { SharedCounter, SharedCounters, SharedVerdict } from './shared-counters.ts'

/** `[apim.throttling.redis]` as a reactor needs it. */
export interface RedisPlan extends RedisAddress {
  /** Begins every key. */
  readonly keyPrefix: string
  /** Id of this gateway: the same in all its reactors, different from any other gateway. */
  readonly gateway: string
  /** Smallest number of gateways that share a quota while Redis does not answer. */
  readonly gatewaysMin: number
}

interface RedisCountersOptions {
  report(level: 'info' | 'error', event: string, fields: Record<string, string | number>): void
  readonly metrics: { add(cell: number, by: number): void }
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number
  /** Milliseconds since 1970. */
  readonly wallMs: () => number
  /** Called when `localShare` returns other shares than before. */
  sharesChanged(): void
}

/** Amount that the last charge of a counter has left. */
interface Balance {
  left: number
  readonly endsMs: number
}

/** A gateway that says nothing for so long is gone. */
const GATEWAY_LIFETIME_MS = 10_000
/** Largest number of counters with a charge that is not sent. */
const OWED_MAX = 10_000
/** Largest number of counters in one command. */
const BATCH_MAX = 256
/** Largest number of counters whose balance is kept for `charge`. */
const BALANCES_MAX = 16_384
/** Longer keys are hashed: clients choose parts of keys. */
const KEY_CHARS_MAX = 256

export class RedisCounters implements SharedCounters {
  readonly #plan: RedisPlan
  readonly #options: RedisCountersOptions
  readonly #connection: RedisConnection
  readonly #presence: readonly string[]
  /** The commands of `admit`, because callers use the same arrays again. */
  readonly #commands = new WeakMap<readonly SharedCounter[], readonly string[]>()
  /** The share of each quota, for a number of gateways. */
  readonly #shares = new WeakMap<Quota, { readonly gateways: number; readonly share: Quota }>()
  /** Charges that are not sent, by key in Redis. */
  #owed = new Map<string, { readonly counter: SharedCounter; amount: number }>()
  /** By key in Redis, oldest first. */
  readonly #balances = new LRUCache<string, Balance>(growingTo(BALANCES_MAX))
  /** Gateways of this Redis, as its last answer had them; 0 before the first. */
  #gateways = 0

  constructor(plan: RedisPlan, options: RedisCountersOptions) {
    this.#plan = plan
    this.#options = options
    this.#presence = ['1', `${plan.keyPrefix}gateways`, plan.gateway]
    this.#connection = new RedisConnection(plan, {
      ...options,
      scripts: [ADMIT, CHARGE, REFUND],
      probe: PRESENCE,
      probeArguments: [...this.#presence, String(GATEWAY_LIFETIME_MS)],
      probed: reply => {
        const gateways = Number(reply)
        if (gateways === this.#gateways) return
        this.#gateways = gateways
        options.sharesChanged()
      },
    })
  }

  get isUp(): boolean {
    return this.#connection.isUp
  }

  /** Resolves when Redis has answered or has failed once; it connects in the background from then on. */
  start(): Promise<void> {
    return this.#connection.start()
  }

  /** Requests that wait get their replies; later ones are undecided. */
  close(): void {
    this.#flush()
    this.#connection.close(['EVAL', PRESENCE.text, ...this.#presence, '0'])
  }

  async admit(counters: readonly SharedCounter[]): Promise<SharedVerdict | null> {
    let command = this.#commands.get(counters)
    if (command === undefined) {
      command = this.#command(
        ADMIT,
        counters.map(({ key, quota }) => this.#key(key, quota)),
        counters.flatMap(({ quota }) => [...limitArguments(quota), quota.type === 'requests' ? '1' : '0']),
      )
      this.#commands.set(counters, command)
    }
    const reply = await this.#connection.run(ADMIT, command)
    return reply === null ? null : this.#verdict(reply as readonly number[])
  }

  refund(counters: readonly SharedCounter[], { windows }: SharedVerdict): void {
    const keys: string[] = []
    const rest: string[] = []
    counters.forEach(({ key, quota }, index) => {
      if (quota.type !== 'requests') return
      keys.push(this.#key(key, quota))
      rest.push(String(windows[index]), '1')
    })
    if (keys.length > 0) void this.#runOrCount(REFUND, this.#command(REFUND, keys, rest), keys.length)
  }

  charge(counter: SharedCounter, amount: number): boolean {
    const key = this.#key(counter.key, counter.quota)
    const owed = this.#owed.get(key)
    if (!this.isUp || (owed === undefined && this.#owed.size >= OWED_MAX)) {
      this.#options.metrics.add(METRIC.throttleRedisLost, 1)
    } else if (owed !== undefined) owed.amount += amount
    else {
      // Charges of one turn of the event loop leave together.
      if (this.#owed.size === 0) setImmediate(() => this.#flush())
      this.#owed.set(key, { counter, amount })
    }
    const balance = this.#balances.get(key)
    if (balance === undefined || balance.endsMs <= this.#options.wallMs()) return true
    const before = balance.left
    balance.left -= amount
    return before > 0
  }

  localShare(quota: Quota): Quota {
    const gateways = Math.max(this.#gateways, this.#plan.gatewaysMin)
    const known = this.#shares.get(quota)
    if (known?.gateways === gateways) return known.share
    const share = { ...quota, limit: Math.max(1, Math.floor(quota.limit / gateways)) }
    this.#shares.set(quota, { gateways, share })
    return share
  }

  #verdict(reply: readonly number[]): SharedVerdict {
    const verdict = { refusedBy: reply[0]!, remaining: [] as number[], endsMs: [] as number[], windows: [] as number[] }
    // Ends are by the clock of Redis, and callers compare them with that of this machine.
    const ahead = this.#options.wallMs() - reply[1]!
    for (let at = 2; at < reply.length; at += 3) {
      verdict.remaining.push(reply[at]!)
      verdict.endsMs.push(reply[at + 1]! + ahead)
      verdict.windows.push(reply[at + 2]!)
    }
    return verdict
  }

  #flush(): void {
    const owed = [...this.#owed]
    this.#owed = new Map()
    for (let at = 0; at < owed.length; at += BATCH_MAX) void this.#charge(owed.slice(at, at + BATCH_MAX))
  }

  async #charge(
    owed: readonly (readonly [string, { readonly counter: SharedCounter; amount: number }])[],
  ): Promise<void> {
    const keys = owed.map(([key]) => key)
    const rest = owed.flatMap(([, { counter, amount }]) => [...limitArguments(counter.quota), String(amount)])
    const reply = await this.#runOrCount(CHARGE, this.#command(CHARGE, keys, rest), keys.length)
    if (reply === null) return
    const { remaining, endsMs } = this.#verdict(reply)
    keys.forEach((key, index) => {
      this.#balances.set(key, { left: remaining[index]!, endsMs: endsMs[index]! })
    })
  }

  async #runOrCount(
    script: RedisScript,
    command: readonly string[],
    charges: number,
  ): Promise<readonly number[] | null> {
    const reply = await this.#connection.run(script, command)
    if (reply === null) this.#options.metrics.add(METRIC.throttleRedisLost, charges)
    return reply as readonly number[] | null
  }

  #command({ sha }: RedisScript, keys: readonly string[], rest: readonly string[]): readonly string[] {
    return ['EVALSHA', sha, String(keys.length), ...keys, ...rest]
  }

  /** A counter with another window or of something else is another counter; another limit counts on. */
  #key(key: string, { type, unit, units }: Quota): string {
    const short = key.length > KEY_CHARS_MAX ? createHash('sha256').update(key).digest('base64url') : key
    return `${this.#plan.keyPrefix}${type}:${units}${unit}:${short}`
  }
}

function limitArguments(quota: Quota): readonly string[] {
  return [windowArgument(quota), quota.window === 'sliding' ? '1' : '0', String(quota.limit)]
}
