/**
 * Throttling of a reactor: joins the policies in force, the counters of all reactors, and the decisions on requests.
 * `throttle-filter.ts` finds the limits of a request; this file charges them.
 */
import type { ReactorAuth } from '../auth/reactor-auth.ts'
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import type { Report } from '../proxy/exchange/connection-context.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import { type Outcome, type Refusal, throttledRefusal } from '../proxy/exchange/outcome.ts'
import { tracer } from '../protocol/tracer.ts'
import type { CounterTable } from './counter-table.ts'
import type { ClusterLimits } from './cluster-limits.ts'
import { ConditionGroups } from './conditions.ts'
import { type CounterState, LEVELS, type Limit } from './limit.ts'
import type { LimitList } from './limit-list.ts'
import type { AdvancedPolicy } from './policy.ts'
import type { PolicyIndex } from './policy-index.ts'
import type { SharedCounters, SharedVerdict } from './shared-counters.ts'
import type { ThrottlePlan } from './throttle-plan.ts'

interface ThrottleContext {
  readonly auth: ReactorAuth
  readonly table: CounterTable
  /** Counters in Redis; null where none is configured. */
  readonly shared: SharedCounters | null
  readonly metrics: Pick<MetricsColumn, 'add'>
  readonly report: Report
  /** Milliseconds since 1970. */
  readonly wallMs: () => number
}

interface CompiledGroups {
  readonly policy: AdvancedPolicy
  /** The conditions as text. */
  readonly text: string
  readonly groups: ConditionGroups
}

/** Wait, in milliseconds, that is told where a limit could not be decided: its window is not known. */
const UNDECIDED_MS = 1000

export class Throttle {
  readonly auth: ReactorAuth
  readonly metrics: Pick<MetricsColumn, 'add'>
  readonly report: Report
  readonly table: CounterTable
  shared: SharedCounters | null
  /** Null: no traffic manager decides. */
  cluster: ClusterLimits | null = null
  readonly #wallMs: () => number
  /** Refusal by a deny policy; its response is kept, which the sequences of this reactor have made. */
  readonly #denied = throttledRefusal(900805)
  /** By name of the policy. */
  readonly #groups = new Map<string, CompiledGroups>()
  #groupsVersion = 0

  constructor({ auth, table, shared, metrics, report, wallMs }: ThrottleContext) {
    this.auth = auth
    this.table = table
    this.shared = shared
    this.metrics = metrics
    this.report = report
    this.#wallMs = wallMs
  }

  get policies(): PolicyIndex {
    return this.auth.state.policies
  }

  get plan(): ThrottlePlan {
    return this.policies.plan
  }

  /**
   * The compiled condition groups of a policy; null without any. A pattern takes up to a millisecond to compile, so
   * what has not changed is kept over changes of other policies.
   */
  groupsOf(policy: AdvancedPolicy): ConditionGroups | null {
    if (policy.groups.length === 0) return null
    if (this.#groupsVersion !== this.policies.version) this.#forgetGroups()
    const known = this.#groups.get(policy.name)
    if (known?.policy === policy) return known.groups
    const text = JSON.stringify(policy.groups.map(({ conditions }) => conditions))
    const groups = known?.text === text ? known.groups : new ConditionGroups(policy.groups)
    this.#groups.set(policy.name, { policy, text, groups })
    return groups
  }

  /** Drops the groups of policies that are gone. */
  #forgetGroups(): void {
    this.#groupsVersion = this.policies.version
    for (const name of this.#groups.keys()) if (!this.policies.advanced(name).isKnown) this.#groups.delete(name)
  }

  deny(exchange: Exchange): Refusal {
    this.metrics.add(METRIC.throttleDenied, 1)
    if (tracer !== null) tracer.note(exchange, 'quota', 'a deny policy refuses the request')
    return this.#denied
  }

  /** Charges a request to all limits or to none. Synchronous unless a limit counts in Redis. */
  admit(exchange: Exchange, limits: LimitList): Outcome | undefined | Promise<Outcome | undefined> {
    if (exchange.upgrade !== '') {
      for (const limit of limits.events) {
        if (limit.stops && this.isUsedUp(limit))
          return this.#refuseElsewhere(exchange, limits, limit, this.#stateOf(limit))
      }
    }
    if (this.cluster !== null) {
      const throttled = this.cluster.refusing(limits.stopping, this.#wallMs())
      if (throttled !== null) return this.#refuseFirst(exchange, limits, throttled)
    }
    if (limits.shared.length > 0) return this.#admitShared(exchange, limits)
    return this.#admitLocally(exchange, limits) ?? this.#pass(exchange, limits)
  }

  /** A limit in front of the one that a traffic manager throttles may be used up on this machine. */
  #refuseFirst(exchange: Exchange, limits: LimitList, throttled: Limit): Refusal {
    const limit = limits.stopping.find(each => this.isUsedUp(each)) ?? throttled
    const state = limit === throttled ? { endsMs: throttled.cluster!.untilMs } : this.#stateOf(limit)
    return this.#refuseElsewhere(exchange, limits, limit, state)
  }

  /** Undefined where no limit of this machine refuses: then all of them are charged. */
  #admitLocally(exchange: Exchange, limits: LimitList): Refusal | undefined {
    const { counters, stopping } = limits
    const refusing = this.table.admit(counters)
    if (refusing < 0) return undefined
    const limit = stopping[refusing]!
    return this.#refuse(exchange, limits, limit, this.#stateOf(limit))
  }

  /**
   * Limits of this machine that are used up refuse before Redis is asked. What Redis has charged goes back where a
   * limit of this machine refuses behind it.
   */
  async #admitShared(exchange: Exchange, limits: LimitList): Promise<Outcome | undefined> {
    const usedUp = limits.stopping.find(limit => this.isUsedUp(limit))
    if (usedUp !== undefined) return this.#refuseElsewhere(exchange, limits, usedUp, this.#stateOf(usedUp))
    const verdict = this.shared === null ? null : await this.shared.admit(limits.sharedCounters)
    if (verdict === null) return this.#admitWithout(exchange, limits)
    const { refusedBy } = verdict
    if (refusedBy >= 0)
      return this.#refuseElsewhere(exchange, limits, limits.shared[refusedBy]!, sharedState(verdict, refusedBy))
    const refused = this.#admitLocally(exchange, limits)
    if (refused !== undefined) this.shared!.refund(limits.sharedCounters, verdict)
    return refused ?? this.#pass(exchange, limits, verdict)
  }

  /** Redis has not answered: the fail mode of each shared limit decides. */
  #admitWithout(exchange: Exchange, limits: LimitList): Outcome | undefined {
    const { shared, stopping } = limits
    this.metrics.add(METRIC.throttleUndecided, 1)
    const closed = shared.find(({ failMode }) => failMode === 'closed')
    if (closed !== undefined) {
      return this.#refuseElsewhere(exchange, limits, closed, { endsMs: this.#wallMs() + UNDECIDED_MS })
    }
    const counted = [...stopping, ...shared.filter(({ failMode }) => failMode === 'local')]
    const refusing = this.table.admit(counted.map(({ counter }) => counter))
    if (refusing < 0) return this.#pass(exchange, limits)
    return this.#refuse(exchange, limits, counted[refusing]!, this.#stateOf(counted[refusing]!))
  }

  /** A refusal that the table has not decided, so that it has not counted it either. */
  #refuseElsewhere(exchange: Exchange, limits: LimitList, limit: Limit, state: Pick<CounterState, 'endsMs'>): Refusal {
    this.table.countRefusal(limit.counter)
    return this.#refuse(exchange, limits, limit, state)
  }

  #refuse(exchange: Exchange, limits: LimitList, limit: Limit, { endsMs }: Pick<CounterState, 'endsMs'>): Refusal {
    this.metrics.add(LEVELS[limit.level].refused, 1)
    if (tracer !== null) this.#traceRefusal(exchange, limits, limit, endsMs)
    return limit.refusal(endsMs, this.#wallMs())
  }

  #pass(exchange: Exchange, limits: LimitList, verdict?: SharedVerdict): undefined {
    const { metrics } = this
    const { passedCells } = limits
    for (let i = 0; i < passedCells.length; i++) metrics.add(passedCells[i]!, 1)
    if (this.cluster !== null) this.cluster.addRequest(limits.stopping)
    if (limits.isLate(exchange)) exchange.lateCharges = limits
    if (limits.marking.length > 0) this.#mark(exchange, limits.marking)
    if (this.plan.rateLimitHeaders) this.#tell(exchange, limits, verdict)
    if (tracer !== null) this.#trace(exchange, limits, verdict)
  }

  /** Charges limits that do not stop, and marks the response where one of them is used up. */
  #mark(exchange: Exchange, marking: readonly Limit[]): void {
    for (const limit of marking) {
      if (limit.quota.type === 'requests') this.charge(limit, 1)
      if (!this.table.isOverrun(limit.counter)) continue
      this.metrics.add(METRIC.throttleMarked, 1)
      if (tracer !== null) tracer.note(exchange, 'quota', `${limit.policy} is used up and does not stop`)
      if (!this.plan.rateLimitHeaders) {
        const item = limit.item({ ...this.#stateOf(limit), remaining: 0 }, this.#wallMs())
        exchange.responseLines += `RateLimit: ${item}\r\n`
      }
    }
  }

  /** Adds the fields of draft-ietf-httpapi-ratelimit-headers. */
  #tell(exchange: Exchange, limits: LimitList, verdict: SharedVerdict | undefined): void {
    const nowMs = this.#wallMs()
    const items = this.#counted(limits).map(limit => limit.item(this.#stateIn(limit, limits, verdict), nowMs))
    if (items.length === 0) return
    exchange.responseLines += `RateLimit-Policy: ${limits.policies}\r\nRateLimit: ${items.join(', ')}\r\n`
  }

  #trace(exchange: Exchange, limits: LimitList, verdict: SharedVerdict | undefined): void {
    for (const limit of this.#counted(limits)) {
      const state = this.#stateIn(limit, limits, verdict)
      tracer?.note(exchange, 'quota', quotaText(limit, state, this.#wallMs()))
    }
  }

  /** Limits in Redis are left out, but for the one that refuses: Redis has not told of them. */
  #traceRefusal(exchange: Exchange, { all }: LimitList, refusing: Limit, endsMs: number): void {
    for (const limit of all) {
      const isKnown = limit.quota.type !== 'events' && limit.shared === null
      if (limit !== refusing && !isKnown) continue
      const state = limit === refusing ? { remaining: 0, endsMs } : this.#stateOf(limit)
      tracer?.note(exchange, 'quota', quotaText(limit, state, this.#wallMs()))
    }
  }

  #counted({ all }: LimitList): readonly Limit[] {
    return all.filter(({ quota }) => quota.type !== 'events')
  }

  #stateIn(limit: Limit, { shared }: LimitList, verdict: SharedVerdict | undefined): CounterState {
    const at = verdict === undefined ? -1 : shared.indexOf(limit)
    return at < 0 ? this.#stateOf(limit) : sharedState(verdict!, at)
  }

  #stateOf({ counter }: Limit): CounterState {
    return { remaining: this.table.remaining(counter), endsMs: this.table.endsMs(counter) }
  }

  /** True if nothing is left in the window, as far as this machine knows. */
  isUsedUp(limit: Limit): boolean {
    if (this.table.remaining(limit.counter) <= 0) return true
    return this.cluster !== null && this.cluster.throttledUntilMs(limit) > this.#wallMs()
  }

  /** Charges what is known late; false where the window is used up. */
  charge(limit: Limit, amount: number): boolean {
    const { counter, shared } = limit
    if (this.cluster !== null) this.cluster.add(limit, amount)
    if (shared !== null && this.shared?.isUp === true) return this.shared.charge(shared, amount)
    return this.table.charge(counter, amount)
  }

  /** Charges one message; returns the limit that refuses it, null where it passes. */
  admitEvent(limits: readonly Limit[]): Limit | null {
    for (const limit of limits) {
      if (!limit.stops || !this.isUsedUp(limit)) continue
      this.table.countRefusal(limit.counter)
      return limit
    }
    for (let at = 0; at < limits.length; at++) {
      const limit = limits[at]!
      if (this.charge(limit, 1) || !limit.stops) continue
      // A rival has used the limit up meanwhile: the message is counted by none.
      for (let before = 0; before < at; before++) {
        const { counter, shared } = limits[before]!
        if (shared === null) this.table.takeBackMessage(counter)
      }
      return limit
    }
    return null
  }
}

function sharedState({ remaining, endsMs }: SharedVerdict, at: number): CounterState {
  return { remaining: remaining[at]!, endsMs: endsMs[at]! }
}

/** For traces: `subscription Gold: 42 of 5000 left, resets in 17 s`. */
function quotaText({ level, policy, quota }: Limit, { remaining, endsMs }: CounterState, nowMs: number): string {
  const resetS = Math.max(0, Math.ceil((endsMs - nowMs) / 1000))
  return `${level} ${policy}: ${remaining} of ${quota.limit} left, resets in ${resetS} s`
}
