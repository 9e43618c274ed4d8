/**
 * Where the fault room meets mediation: a refusal becomes a message, the sequence that words it is run, and what it
 * leaves is the answer. Whatever a sequence does, there is an answer: the built-in one where it gives none.
 */
import type { Failure } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Refusal } from '../exchange/outcome.ts'
import type { Report } from '../exchange/surroundings.ts'
import { type FaultFacts, factsOf, reasonOf } from '../fault/facts.ts'
import { formatOf, prefersTextXml } from '../fault/format.ts'
import { faultBody, JSON_LINE } from '../fault/render.ts'
import { linesForCaches, linesNotIn, linesWithout } from '../fault/reply-lines.ts'
import { fill } from './fault-message.ts'
import { keptValue } from '../http1/kept-fields.ts'
import { type FormattedAnswer, formatAnswer } from '../mediation/formatter.ts'
import { Message } from '../mediation/message.ts'
import type { Sequences } from '../mediation/sequences.ts'
import { textOf } from '../mediation/value.ts'
import type { FaultPlan } from '../plan.ts'
import { tracer } from '../protocol/tracer.ts'
import { TOKEN_APIS } from '../token-apis.ts'

/** The same complaint again is said after so long. */
const SILENCE_MS = 1000
/** Words whatever goes wrong at `/token` and `/revoke`. */
const TOKEN_FAULT = '_token_fault_'

export class FaultAnswers {
  readonly #report: Report
  readonly #now: () => number
  readonly #correlationField: string
  readonly #sequences: Sequences
  /** Words the faults of AI APIs; '' for none of their own. */
  #aiSequence = ''
  #saidMs = Number.NEGATIVE_INFINITY

  /** `correlationField`: its line is the gateway's own. `now`: in milliseconds. */
  constructor(plan: FaultPlan, sequences: Sequences, correlationField: string, report: Report, now: () => number) {
    this.#sequences = sequences
    this.#report = report
    this.#now = now
    this.#correlationField = correlationField.toLowerCase()
    this.renew(plan)
  }

  renew({ aiSequence }: FaultPlan): void {
    this.#aiSequence = aiSequence
  }

  /** `sequence`: of a situation that has its code in common with others; null: that of the code. */
  answer(exchange: Exchange, outcome: Refusal, failure: Failure | null, sequence: string | null): void {
    const facts = factsOf(outcome, failure)
    const isAi = this.#aiSequence !== '' && exchange.api?.isAi === true
    const isOfTokens = TOKEN_APIS.includes(exchange.api?.name ?? '')
    const usual = isOfTokens ? TOKEN_FAULT : (sequence ?? facts.sequence)
    const name = isAi ? this.#aiSequence : usual
    if (tracer !== null) tracer.noted(exchange, 'fault', `${facts.code}, by ${name}.xml`)
    this.give(exchange, this.#attempt(name, exchange, facts, failure) ?? builtIn(facts), outcome)
  }

  /** What a sequence made, and what belongs to the exchange whoever words its answer. */
  give(exchange: Exchange, worded: FormattedAnswer, outcome: Pick<Refusal, 'lines'>): void {
    const { status, reason = reasonOf(status), body } = worded
    const lines = linesWithout(worded.lines, this.#correlationField)
    const all = lines + linesNotIn(lines, linesOf(exchange, outcome))
    exchange.downstream.answer(status, reason, linesForCaches(status, all), body)
  }

  /** Whatever goes wrong here must not take the answer with it. */
  #attempt(name: string, exchange: Exchange, facts: FaultFacts, failure: Failure | null): FormattedAnswer | undefined {
    try {
      return this.#worded(name, exchange, facts, failure)
    } catch (error) {
      return this.#without(name, `failed: ${String(error)}`)
    }
  }

  /** Undefined: the sequence gave no answer. */
  #worded(name: string, exchange: Exchange, facts: FaultFacts, failure: Failure | null): FormattedAnswer | undefined {
    if (!this.#sequences.has(name)) return this.#without(name, 'there is no such sequence')
    const { kept } = exchange
    const media = formatOf(kept)
    const message = new Message(field => keptValue(kept, field))
    fill(message, exchange, facts, failure, media)
    const outcome = this.#sequences.run(name, message)
    const isAnswer = outcome === 'sent' || outcome === 'responded'
    if (!isAnswer) return this.#without(name, `it has ${outcome}, and answered nothing`)
    // As a format text/xml is SOAP; who asks for no envelope still gets the type that was asked for.
    const isXml = textOf(message.get('axis2', 'ContentType')) === 'application/xml'
    if (isXml && prefersTextXml(kept)) message.set('axis2', 'ContentType', 'text/xml')
    return formatAnswer(message, this.#report)
  }

  #without(name: string, cause: string): undefined {
    const now = this.#now()
    if (now - this.#saidMs < SILENCE_MS) return undefined
    this.#saidMs = now
    this.#report('warn', 'fault worded without its sequence', { SEQUENCE: name, CAUSE_OF_ERROR: cause })
    return undefined
  }
}

/** Fields of requests that sequences read, in lower case. */
export function fieldsReadBy({ programs }: FaultPlan): readonly string[] {
  return [...new Set(programs.flatMap(({ requestFields }) => requestFields))]
}

function builtIn(facts: FaultFacts): FormattedAnswer {
  const { status } = facts
  return { status, reason: reasonOf(status), lines: JSON_LINE, body: faultBody(facts) }
}

/** What belongs to the refusal, whoever words it. */
function linesOf({ retryAfterS, replyLines, grant }: Exchange, { lines }: Pick<Refusal, 'lines'>): string {
  const retry = retryAfterS === 0 ? '' : `Retry-After: ${retryAfterS}\r\n`
  return lines + retry + replyLines + (grant === null ? '' : grant.lines)
}
