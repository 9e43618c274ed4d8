/**
 * Runs an edited `_cors_request_handler_` for every response with CORS: of backends, preflights and faults. The default
 * sequence is never run here, because it sets exactly what the policy grants. A sequence that reads nothing of the
 * request runs once per grant of a policy; any other one runs once per request, before the backend gets it.
 */
import { describeCors, describeRequest } from './exchange/request-properties.ts'
import { capturedValue } from '../http1/captured-fields.ts'
import type { CompiledSequences } from '../mediation/compiled-sequences.ts'
import { formatResponse } from '../mediation/formatter.ts'
import { Message } from '../mediation/message.ts'
import type { SequencePlan } from '../mediation/sequence-plan.ts'
import type { FaultPlan } from '../plan/reactor-plan.ts'
import type { Report } from './exchange/connection-context.ts'
import { type CorsGrant, type Exchange, NO_OTHER_LINES } from './exchange/exchange.ts'

const SEQUENCE = '_cors_request_handler_'
const CORS_FIELD = /^access-control-/i
/** Bytes of all lines: heads are composed in a chunk with room for so many. */
const LINES_MAX = 6000

/** A grant with the status that the sequence has set; 0: none. */
interface Mediated {
  readonly grant: CorsGrant
  readonly status: number
}

export class CorsMediation {
  readonly #sequences: CompiledSequences
  readonly #report: Report
  #isActive = false
  /** The sequence reads nothing of a request but its grant. */
  #isConstant = false
  /** `Vary` for the request fields that the sequence reads; '' for none. */
  #varyLine = ''
  /** Results of a constant sequence, by grant of a policy. */
  #known = new WeakMap<CorsGrant, Mediated>()

  constructor(plan: FaultPlan, sequences: CompiledSequences, report: Report) {
    this.#sequences = sequences
    this.#report = report
    this.update(plan)
  }

  /** False for the default sequence. */
  get isActive(): boolean {
    return this.#isActive
  }

  update({ sequences }: FaultPlan): void {
    const plan = sequences.find(({ name }) => name === SEQUENCE)
    this.#isActive = plan !== undefined && !plan.isDefault
    this.#known = new WeakMap()
    if (plan === undefined) return
    const called = withCalled(plan, sequences)
    const fields = called.flatMap(({ requestFields }) => requestFields.filter(name => !CORS_FIELD.test(name)))
    this.#varyLine = fields.length === 0 ? '' : `Vary: ${[...new Set(fields)].join(', ')}\r\n`
    this.#isConstant = fields.length === 0 && called.every(({ steps }) => readsOnlyGrant(steps))
  }

  /**
   * Replaces the exchange's grant, which the policy has made, by what the sequence makes of it. Returns the status that
   * the sequence has set; 0: none.
   */
  mediate(exchange: Exchange): number {
    const grant = exchange.corsGrant!
    if (grant.source !== null) return 0
    const known = this.#known.get(grant)
    const mediated = known ?? this.#run(exchange, grant)
    if (known === undefined && this.#isConstant) this.#known.set(grant, mediated)
    exchange.corsGrant = mediated.grant
    return mediated.status
  }

  #run(exchange: Exchange, grant: CorsGrant): Mediated {
    const { captured } = exchange
    // Response fields of the same names are meant, and the request's are not these.
    const message = new Message(name => (CORS_FIELD.test(name) ? undefined : capturedValue(captured, name)))
    if (!this.#isConstant) describeRequest(message, exchange)
    describeCors(message, exchange)
    if (this.#sequences.run(SEQUENCE, message) === 'failed') return { grant: { ...grant, source: grant }, status: 0 }
    const hasStatus = message.get('axis2', 'HTTP_SC') !== undefined
    const { lines, status } = formatResponse(message, this.#report)
    return { grant: this.#grantOf(lines, grant), status: hasStatus ? status : 0 }
  }

  /** `text`: the lines that the sequence has set. */
  #grantOf(text: string, source: CorsGrant): CorsGrant {
    if (text.length + this.#varyLine.length > LINES_MAX) {
      const cause = `the fields have more than ${LINES_MAX} characters: those of the policy are sent`
      this.#report('warn', 'sequence failed', { SEQUENCE, CAUSE_OF_ERROR: cause })
      return { ...source, source }
    }
    const each = text.split(/(?<=\r\n)/).filter(line => line !== '' && !/^[^:]*: *\r\n$/.test(line))
    const vary = source.vary + this.#varyLine + each.filter(line => /^vary:/i.test(line)).join('')
    const cors = each.filter(line => CORS_FIELD.test(line)).join('') + vary
    const others = each
      .filter(line => !CORS_FIELD.test(line) && !/^vary:/i.test(line))
      .map(line => ({ name: line.slice(0, line.indexOf(':')).toLowerCase(), line }))
    return {
      lines: others.map(({ line }) => line).join('') + cors,
      bytes: Uint8Array.from(Buffer.from(cors, 'latin1')),
      vary,
      others: others.length === 0 ? NO_OTHER_LINES : others,
      source,
    }
  }
}

/** A sequence and all that it runs. */
function withCalled(plan: SequencePlan, sequences: readonly SequencePlan[]): readonly SequencePlan[] {
  const all = new Set([plan])
  for (const { calls } of all) {
    for (const called of sequences) if (calls.includes(called.name)) all.add(called)
  }
  return [...all]
}

/** True if no expression of the plan reads anything but CORS properties. A `log` runs for every request. */
function readsOnlyGrant(plan: unknown): boolean {
  if (typeof plan !== 'object' || plan === null) return true
  const { kind, name, mediator } = plan as {
    readonly kind?: unknown
    readonly name?: unknown
    readonly mediator?: unknown
  }
  if (mediator === 'log' || ['to', 'json-path', 'xpath', 'clock'].includes(String(kind))) return false
  if (kind === 'property' && !/^(?:CORSConfiguration\.Enabled$|access-control-)/i.test(String(name))) return false
  return Object.values(plan).every(readsOnlyGrant)
}
