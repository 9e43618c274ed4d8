/** What a reactor's tokens rest on, as a test tells it; and tokens brought to them as requests do. */
import type { Inquiry, InquiryResults, Introspection } from '../../src/identity/feed.ts'
import type { IdentityPlan, IssuerPlan } from '../../src/identity/identity-plan.ts'
import { IssuerBook } from '../../src/identity/issuer-book.ts'
import type { TokenEntry, TokenVerdict } from '../../src/identity/token-verdict.ts'
import { type TokenSources, Tokens } from '../../src/identity/tokens.ts'
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

class ToldSources implements TokenSources {
  epoch = 1
  readonly issuers = new IssuerBook()
  readonly revoked = new Set<string>()
  readonly asked: Inquiry[] = []
  /** What introspection says; an Error: there is no answer. */
  introspection: Introspection | Error = null
  /** What becomes of a search for a key. */
  search: () => void = () => {}
  /** Inquiries wait for it. */
  until: Promise<void> = Promise.resolve()

  catchUp(): void {}

  revoke(key: string): void {
    this.revoked.add(key)
    this.epoch++
  }

  async ask<Q extends Inquiry>(inquiry: Q): Promise<InquiryResults[Q['kind']]> {
    this.asked.push(inquiry)
    await this.until
    if (inquiry.kind === 'key') {
      this.search()
      return true as InquiryResults[Q['kind']]
    }
    if (this.introspection instanceof Error) throw this.introspection
    return this.introspection as InquiryResults[Q['kind']]
  }
}

type TokenPlan = Pick<IdentityPlan, 'issuers' | 'skewMs' | 'verdictMs'>

export class TokenBench {
  readonly sources = new ToldSources()
  readonly tokens: Tokens<string>
  nowMs = 1_700_000_000_000
  /** Since the last tick. */
  lagMs = 0
  readonly #counts = new Map<number, number>()

  constructor(plan: Partial<TokenPlan> & Pick<TokenPlan, 'issuers'>) {
    const whole = { skewMs: 0, verdictMs: 900_000, ...plan } as IdentityPlan
    this.sources.issuers.renew(plan.issuers)
    const metrics = {
      add: (cell: number, by: number) => void this.#counts.set(cell, (this.#counts.get(cell) ?? 0) + by),
    }
    const clocks = { wallMs: () => this.nowMs - this.lagMs, exactMs: () => this.nowMs }
    this.tokens = new Tokens({ sources: this.sources, metrics, reactors: 2, ...clocks }, whole)
  }

  count(metric: keyof typeof METRIC): number {
    return this.#counts.get(METRIC[metric]) ?? 0
  }

  /** As it stands in the head of a request, whose bytes are others' as soon as the call is over. */
  check(token: string): TokenEntry<string> | Promise<TokenEntry<string>> {
    const chunk = arena.lend(token.length + 1)!
    arena.bytes.latin1Write(token, chunk.offset + 1)
    const entry = this.tokens.check(chunk.offset + 1, token.length)
    chunk.view.fill(0)
    arena.giveBack(chunk)
    return entry
  }

  async verdict(token: string): Promise<TokenVerdict> {
    return (await this.check(token)).verdict
  }
}
