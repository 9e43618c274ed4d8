/** What authentication needs in a reactor, joined: tokens, what is known of those who ask, and their tunnels. */
import type { Report } from '../exchange/surroundings.ts'
import type { Denial, Grant } from '../identity/grants.ts'
import { Identity, type Validator } from '../identity/identity.ts'
import type { IdentityPlan } from '../identity/identity-plan.ts'
import type { IdentityState } from '../identity/identity-state.ts'
import { Tokens } from '../identity/tokens.ts'
import type { ReactorPlan } from '../plan.ts'
import { OpenTunnels } from './open-tunnels.ts'

interface IdentityOutlets {
  readonly identity: IdentityState
  readonly validator: Validator | null
  readonly report: Report
  readonly metrics: { add(cell: number, by: number): void }
  /** Milliseconds of a clock that only goes forward. */
  readonly nowMs: () => number
}

export class IdentitySide {
  readonly identity: Identity
  readonly tunnels: OpenTunnels
  readonly #tokens: Tokens<Grant | Denial>
  /** Of the tick: a token is good for a tick longer, and no request asks for the time. */
  #wallMs = Date.now()

  constructor(
    { identity: plan, reactors }: Pick<ReactorPlan, 'identity' | 'reactors'>,
    { identity: sources, validator, report, metrics, nowMs }: IdentityOutlets,
  ) {
    const wallMs = (): number => this.#wallMs
    this.#tokens = new Tokens({ sources, metrics, reactors, wallMs, exactMs: Date.now }, plan)
    this.identity = new Identity({ plan, sources, tokens: this.#tokens, validator, report, metrics, nowMs })
    this.tunnels = new OpenTunnels(this.identity, report)
  }

  renew(plan: IdentityPlan, validator: Validator | null): void {
    this.#tokens.renew(plan)
    this.identity.renew(plan, validator)
  }

  tick(): void {
    this.#wallMs = Date.now()
    this.tunnels.look(this.#wallMs)
  }

  /** Gives back what it holds of the arena. */
  stop(): void {
    this.#tokens.forget()
  }
}
