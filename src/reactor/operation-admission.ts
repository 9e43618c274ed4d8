/**
 * Admits the operations of a GraphQL request: all of them must admit the caller, the limits of each are charged, and
 * depth and complexity stay within those of the subscription. The filters have admitted the request itself before.
 */
import { Challenges } from '../auth/challenges.ts'
import type { FaultCode } from '../faults/error-codes.ts'
import { COMPLEXITY, DEPTH, INTROSPECTION, OPERATIONS } from '../mediation/graphql/graphql-sequence.ts'
import type { AdmissionPlan } from '../mediation/flow-plan.ts'
import { textOf } from '../mediation/value.ts'
import type { MessageState } from '../mediation/worker-task.ts'
import type { ApiPlan } from '../plan/reactor-plan.ts'
import type { Caller } from '../proxy/exchange/caller.ts'
import type { FilterResult } from '../proxy/exchange/contract.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import type { LateCharges } from '../proxy/exchange/late-charges.ts'
import { type Refusal, refusal } from '../proxy/exchange/outcome.ts'
import type { Resource } from '../proxy/exchange/resource.ts'
import { CallerLimits, type LimitedApi } from '../throttle/caller-limits.ts'
import { countedAddress } from '../throttle/denials.ts'
import { NO_QUERY_LIMITS } from '../throttle/policy.ts'
import type { Throttle } from '../throttle/throttle.ts'
import { authenticatesCallers, limitedApi, requiresAuthentication } from '../filters/build-chain.ts'

const NO_OPERATION = refusal(900906)
const TOO_DEEP = 900820
const TOO_COMPLEX = 900821

export class OperationAdmission {
  /** The sequence that finds the operations of a request. */
  readonly sequence: string
  readonly #throttle: Throttle
  readonly #operations: ReadonlyMap<string, Resource>
  /** Null: every caller may use every operation. */
  readonly #challenges: Challenges | null
  readonly #authField: string
  readonly #api: LimitedApi
  readonly #limits = new WeakMap<Caller, CallerLimits>()

  constructor(api: ApiPlan, { sequence, operations }: AdmissionPlan, throttle: Throttle) {
    this.sequence = sequence
    this.#throttle = throttle
    const all = [...operations, ...introspectionOf(operations)]
    this.#operations = new Map(all.map(each => [`${each.verb} ${each.template}`, each]))
    this.#challenges = authenticatesCallers(api) ? new Challenges(api.access.schemes) : null
    this.#authField = api.access.authField
    this.#api = limitedApi(api, requiresAuthentication(api))
  }

  /** `state`: as the sequence has left it. */
  admit(exchange: Exchange, state: MessageState): FilterResult {
    const values = new Map(state.default)
    const names = textOf(values.get(OPERATIONS))
      .split(',')
      .filter(name => name !== '')
    const operations = names.map(name => this.#operations.get(name))
    const excess = this.#excess(exchange, Number(values.get(DEPTH)), Number(values.get(COMPLEXITY)))
    if (excess !== undefined) return excess
    const known = operations.filter(operation => operation !== undefined)
    if (known.length < operations.length) return NO_OPERATION
    return this.#denied(exchange.caller, known) ?? this.#charge(exchange, known)
  }

  /** A connection over which every operation may come: the caller needs the rights of all of them. */
  admitConnection(exchange: Exchange): Refusal | undefined {
    const { graphQL = NO_QUERY_LIMITS } = this.#subscription(exchange)
    if (graphQL.depth + graphQL.complexity > 0) return UNMEASURED
    return this.#denied(exchange.caller, [...this.#operations.values()])
  }

  #denied(caller: Caller | null, operations: readonly Resource[]): Refusal | undefined {
    for (const operation of operations) {
      const code = this.#denial(caller, operation)
      if (code !== 0) return this.#challenges!.refusal(code, this.#authField || this.#throttle.auth.plan.authField)
    }
    return undefined
  }

  #denial(caller: Caller | null, { authType, scopes }: Resource): FaultCode | 0 {
    if (this.#challenges === null || authType === 'None') return 0
    if (caller === null || caller.method === 'none') return 900902
    const isOther = authType === (caller.isApplication ? 'Application User' : 'Application')
    if (isOther) return 900905
    return scopes.length === 0 || scopes.some(scope => caller.heldScopes.has(scope)) ? 0 : 900910
  }

  /** The limits of subscription and application were charged by the filter. */
  #charge(exchange: Exchange, operations: readonly Resource[]): FilterResult {
    const caller = this.#callerOf(exchange)
    let own = this.#limits.get(caller)
    if (own === undefined || own.version !== this.#throttle.policies.version) {
      own = new CallerLimits(this.#throttle, this.#api, caller, false)
      this.#limits.set(caller, own)
    }
    const limits = own.limitsOfOperations(exchange, operations)
    if (limits.isEmpty) return undefined
    const before = exchange.lateCharges
    exchange.lateCharges = null
    const verdict = this.#throttle.admit(exchange, limits)
    if (!(verdict instanceof Promise)) {
      joinCharges(exchange, before)
      return verdict
    }
    return verdict.then(outcome => {
      joinCharges(exchange, before)
      return outcome
    })
  }

  #excess(exchange: Exchange, depth: number, complexity: number): Refusal | undefined {
    const { name, graphQL = NO_QUERY_LIMITS } = this.#subscription(exchange)
    if (graphQL.depth > 0 && depth > graphQL.depth) {
      return told(TOO_DEEP, `The query is ${depth} deep; ${name} allows ${graphQL.depth}`)
    }
    if (graphQL.complexity > 0 && complexity > graphQL.complexity) {
      return told(TOO_COMPLEX, `The query has the complexity ${complexity}; ${name} allows ${graphQL.complexity}`)
    }
    return undefined
  }

  #subscription(exchange: Exchange) {
    return CallerLimits.subscriptionPolicy(this.#throttle, this.#callerOf(exchange))
  }

  #callerOf(exchange: Exchange): Caller {
    return exchange.caller ?? this.#throttle.auth.anonymous(countedAddress(exchange), exchange.keyType)
  }
}

/** The fields that show the schema need a caller, whoever it is, where some operation does. */
function introspectionOf(operations: readonly Resource[]): readonly Resource[] {
  const isOpen = operations.every(({ authType }) => authType === 'None')
  const authType = isOpen ? 'None' : 'Application & Application User'
  return INTROSPECTION.map(template => ({ verb: 'QUERY', template, authType, tier: 'Unlimited', scopes: [] }))
}

const UNMEASURED = told(TOO_DEEP, 'The subscription limits queries, which is not possible over WebSocket')

function told(code: FaultCode, description: string): Refusal {
  return { ...refusal(code), description }
}

/** Charges of the filter and of the operations, behind the exchange. */
function joinCharges(exchange: Exchange, before: LateCharges | null): void {
  const { lateCharges: own } = exchange
  if (own === null || before === null) {
    exchange.lateCharges = own ?? before
    return
  }
  exchange.lateCharges = {
    settle: ended => {
      before.settle(ended)
      own.settle(ended)
    },
    meter: tunnelled => before.meter(tunnelled),
  }
}
