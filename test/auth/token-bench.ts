/** A TokenValidator on a scripted AuthState, which takes tokens as the requests of a reactor bring them. */
import type { AuthPlan, IssuerPlan } from '../../src/auth/auth-plan.ts'
import type { ControlCall, ControlCallResults, IntrospectionResult } from '../../src/auth/control-protocol.ts'
import { IssuerRegistry } from '../../src/auth/issuers.ts'
import { RevokedTokens } from '../../src/auth/revoked-tokens.ts'
import type { TokenResult } from '../../src/auth/token-result.ts'
import type { TokenEntry } from '../../src/auth/token-table.ts'
import { type TokenContext, TokenValidator } from '../../src/auth/token-validator.ts'
import { arena } from '../../src/http1/llhttp.ts'
import { METRIC } from '../../src/observe/metrics.ts'

const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']

export function issuerPlan(issuer: string, more: Partial<IssuerPlan> = {}): IssuerPlan {
  return {
    issuer,
    isOwn: false,
    algorithms: ALGORITHMS,
    audiences: [],
    claims: [],
    consumerKeyClaims: ['azp', 'client_id', 'consumerKey'],
    scopesClaim: 'scope',
    lowS: false,
    ...more,
  }
}

class ScriptedState implements Pick<TokenContext['state'], keyof TokenContext['state']> {
  version = 1
  readonly issuers = new IssuerRegistry()
  readonly revoked = new RevokedTokens()
  readonly calls: ControlCall[] = []
  /** Result of introspection; an Error: the call fails. */
  introspection: IntrospectionResult | Error = null
  /** Runs for each call for an unknown key. */
  onKeyCall: () => void = () => {}
  /** Calls wait for it. */
  until: Promise<void> = Promise.resolve()

  catchUp(): void {}

  revoke(key: string): void {
    this.revoked.add([{ key, expiresMs: Number.MAX_SAFE_INTEGER }], 0)
    this.version++
  }

  async call<One extends ControlCall>(call: One): Promise<ControlCallResults[One['kind']]> {
    this.calls.push(call)
    await this.until
    if (call.kind === 'key') {
      this.onKeyCall()
      return true as ControlCallResults[One['kind']]
    }
    if (this.introspection instanceof Error) throw this.introspection
    return this.introspection as ControlCallResults[One['kind']]
  }
}

type TokenPlan = Pick<AuthPlan, 'issuers' | 'skewMs' | 'tokenCacheMs'>

export class TokenBench {
  readonly state = new ScriptedState()
  readonly tokens: TokenValidator
  /** Milliseconds that pass on every clock. */
  nowMs = 1_700_000_000_000
  /** Milliseconds by which the wall clock is ahead of the true time; negative: behind. */
  wallErrorMs = 0
  /** Milliseconds since the last tick. */
  lagMs = 0
  readonly #counts = new Map<number, number>()

  constructor(plan: Partial<TokenPlan> & Pick<TokenPlan, 'issuers'>) {
    this.state.issuers.setPlans(plan.issuers)
    const metrics = {
      add: (cell: number, by: number) => void this.#counts.set(cell, (this.#counts.get(cell) ?? 0) + by),
    }
    const clocks = {
      tickMs: () => this.nowMs - this.lagMs,
      wallMs: () => this.nowMs + this.wallErrorMs - this.lagMs,
      exactMs: () => this.nowMs + this.wallErrorMs,
    }
    const whole = { skewMs: 0, tokenCacheMs: 900_000, ...plan }
    this.tokens = new TokenValidator({ state: this.state, metrics, reactors: 2, ...clocks }, whole)
  }

  count(metric: keyof typeof METRIC): number {
    return this.#counts.get(METRIC[metric]) ?? 0
  }

  /** Validates a token in the arena and overwrites its bytes right after the call, as the next read does. */
  validate(token: string): TokenEntry | Promise<TokenEntry> {
    const chunk = arena.acquire(token.length + 1)!
    arena.bytes.latin1Write(token, chunk.offset + 1)
    const at = chunk.offset + 1
    const row = this.tokens.find(at, token.length, null, 0)
    const entry = row < 0 ? this.tokens.validateUnknown(at, token.length) : this.tokens.entryAt(row)
    chunk.view.fill(0)
    arena.release(chunk)
    return entry
  }

  async result(token: string): Promise<TokenResult> {
    return (await this.validate(token)).result
  }
}
