/**
 * `<foreach>`: runs a sequence for each part of the message that `expression` finds, in place, or for each item of
 * `collection`, on a copy of the message. Items run in order, or beside each other with
 * `parallel-execution`; their results keep the order.
 */
import type { XmlElement } from '../../config/xml.ts'
import { mostOf } from '../flow-plan.ts'
import type { Expression, JsonPath, XPathExpression } from '../expression.ts'
import { compileNodes } from '../expression-compiler.ts'
import { editAll, jsonOfValue, type Location, locate, valueAt } from '../json-edit.ts'
import { MediationFault } from '../mediation-fault.ts'
import { type CompileContext, mediator, type Run } from '../mediator.ts'
import type { Message, Payload } from '../message.ts'
import { valueOfPayload } from '../payload-value.ts'
import type { Branch } from '../sequence-plan.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import { type Json, type Value, valueOfJson } from '../value.ts'
import { XmlDocument } from '../xml-edit.ts'
import { treeOf } from '../xpath-expression.ts'

type Over =
  /** Parts of the payload, which the results replace. `counter`: property of the number from 0. */
  | { readonly kind: 'parts'; readonly expression: Expression; readonly counter: string }
  /** `counter` and `result`: variables; '' for none. `result` gets the results, else they replace the collection. */
  | {
      readonly kind: 'collection'
      readonly expression: Expression
      readonly counter: string
      readonly result: string
      readonly isUpdated: boolean
      /** Items that run at once. */
      readonly atOnce: number
    }

interface ForeachSettings {
  readonly over: Over
  readonly body: Branch
}

const NEW_STYLE = ['counter-variable', 'result-target', 'result-type', 'update-original', 'parallel-execution']
const COUNTER = 'FOREACH_COUNTER'
/** Each item may wait for a backend. */
const AT_ONCE_MAX = 16

export const foreach = mediator<ForeachSettings>({
  name: 'foreach',
  attributes: ['expression', 'sequence', 'id', 'collection', ...NEW_STYLE],
  elements: ['sequence'],

  parse(element, parser) {
    const body = parseBody(element, parser)
    const over = element.has('collection') ? parseCollection(element, parser) : parseParts(element, parser)
    return body === undefined || over === undefined ? undefined : { over, body }
  },

  needs: ({ body }, context) => mostOf('worker', context.branch(body)),

  compile({ over, body }, context) {
    const inner = context.compileBranch(body)
    // Each item may enter as many sequences as the whole message.
    const run: Run = message => {
      const { enteredSequences } = message
      const goesOn = inner(message)
      if (!(goesOn instanceof Promise)) {
        message.enteredSequences = enteredSequences
        return goesOn
      }
      return goesOn.then(on => {
        message.enteredSequences = enteredSequences
        return on
      })
    }
    if (over.kind === 'collection') return overCollection(over, run, context)
    const { expression } = over
    if (expression.kind === 'json-path') return overJson(expression.path, over.counter, run)
    return overXml(expression as XPathExpression, over.counter, run, context)
  },
})

function parseBody(element: XmlElement, parser: SequenceParser): Branch | undefined {
  const inline = parser.only(element, 'sequence')
  if ((element.attribute('sequence') === '') === (inline === undefined)) {
    return parser.error(element, 'sequence', 'expected either sequence, or a child <sequence>', 'give one of them')
  }
  if (inline === undefined) return parser.branch(element)
  parser.checkAttributes(inline, [])
  parser.checkNoText(inline)
  return { key: '', steps: parser.mediators(inline.children) }
}

function parseParts(element: XmlElement, parser: SequenceParser): Over | undefined {
  for (const name of NEW_STYLE) {
    if (element.has(name)) parser.error(element, name, 'needs collection', 'add collection in place of expression')
  }
  const expression = parser.expression(element, 'expression')
  if (expression === undefined) return undefined
  if (expression.kind !== 'json-path' && expression.kind !== 'xpath') {
    const hint = 'write json-eval($.a) or //a'
    return parser.error(element, 'expression', 'is no path into the body', hint, element.attribute('expression'))
  }
  const id = element.attribute('id')
  return { kind: 'parts', expression, counter: id === '' ? COUNTER : `${id}_${COUNTER}` }
}

function parseCollection(element: XmlElement, parser: SequenceParser): Over | undefined {
  for (const name of ['expression', 'id']) {
    if (element.has(name)) parser.error(element, name, 'has no effect with collection', 'remove it')
  }
  const expression = parser.expression(element, 'collection')
  const updates = element.has('update-original') ? parser.flag(element, 'update-original') : true
  const parallel = parser.flag(element, 'parallel-execution')
  const type = parser.choice(element, 'result-type', ['JSON'], 'JSON')
  if (expression === undefined || updates === undefined || parallel === undefined || type === undefined) {
    return undefined
  }
  const result = element.attribute('result-target')
  const counter = element.attribute('counter-variable')
  const isUpdated = updates && result === ''
  return { kind: 'collection', expression, counter, result, isUpdated, atOnce: parallel ? AT_ONCE_MAX : 1 }
}

/** Runs `each` for every index from 0 until one returns false, or a promise of it. */
function inTurn(count: number, each: (at: number) => boolean | Promise<boolean>, from = 0): boolean | Promise<boolean> {
  for (let at = from; at < count; at++) {
    const goesOn = each(at)
    if (goesOn instanceof Promise) return goesOn.then(on => on && inTurn(count, each, at + 1))
    if (!goesOn) return false
  }
  return true
}

/** Runs `last` after all items, unless the flow has ended. */
function andThen(goesOn: boolean | Promise<boolean>, last: () => void): boolean | Promise<boolean> {
  if (goesOn instanceof Promise) return goesOn.then(on => andThen(on, last))
  if (goesOn) last()
  return goesOn
}

function overJson(path: JsonPath, counter: string, run: Run): Run {
  return message => {
    const { json } = message
    if (json === undefined) return true
    const places = locate(path, json).flatMap(place => itemsAt(json, place))
    const results: Json[] = []
    const goesOn = inTurn(places.length, at => {
      message.json = valueAt(json, places[at]!) ?? null
      message.set('default', counter, at)
      return andThen(run(message), () => void results.push(jsonOfPayload(message.payload)))
    })
    return andThen(goesOn, () => {
      if (places.length > 0) message.json = editAll(json, places, (_, at) => results[at]!)
    })
  }
}

/** Places of the items of an array; the place itself of another value. */
function itemsAt(json: Json, place: Location): readonly Location[] {
  const value = valueAt(json, place)
  return Array.isArray(value) ? value.map((_, at) => [...place, at]) : [place]
}

function jsonOfPayload(payload: Payload | null): Json {
  return payload === null ? null : jsonOfValue(valueOfPayload(payload))
}

function overXml(expression: XPathExpression, counter: string, run: Run, { warn }: CompileContext): Run {
  const find = compileNodes(expression, warn)
  return message => {
    const { payload } = message
    const document = new XmlDocument(payload)
    const nodes = find(message, document.root)
    const goesOn = inTurn(nodes.length, at => {
      const root = treeOf(nodes[at]!)
      if (typeof root === 'string') return true
      message.payload = { kind: 'xml', root }
      message.set('default', counter, at)
      return andThen(run(message), () => {
        const value = valueOfPayload(message.payload)
        document.replace(nodes[at]!, typeof value === 'object' && value.kind === 'xml' ? value.nodes : [])
      })
    })
    return andThen(goesOn, () => {
      message.payload = nodes.length === 0 ? payload : document.payload()
    })
  }
}

function overCollection(over: Extract<Over, { kind: 'collection' }>, run: Run, context: CompileContext): Run {
  const evaluate = context.compileExpression(over.expression)
  const update = over.isUpdated ? compileUpdate(over.expression) : () => undefined
  return message => {
    const items = itemsOf(evaluate(message))
    const results: Json[] = []
    const goesOn = inLanes(items.length, over.atOnce, at => {
      const copy = message.copy()
      const before = copy.steps
      copy.json = items[at]!
      if (over.counter !== '') copy.set('variable', over.counter, at)
      return whole(run(copy), () => {
        message.steps += copy.steps - before
        if (copy.outcome === 'faulted') throw new MediationFault(copy.fault!)
        results[at] = jsonOfPayload(copy.payload)
      })
    })
    return andThen(goesOn, () => {
      if (over.result !== '') message.set('variable', over.result, { kind: 'json', value: results })
      else update(message, results)
    })
  }
}

/**
 * Runs `each` for every index, up to `atOnce` that wait at a time. No further index begins after one has thrown; the
 * error is thrown when those that run have ended.
 */
function inLanes(count: number, atOnce: number, each: (at: number) => true | Promise<true>): true | Promise<true> {
  let next = 0
  const lane = (): true | Promise<true> => {
    while (next < count) {
      const goesOn = each(next++)
      if (goesOn instanceof Promise) return goesOn.then(lane)
    }
    return true
  }
  const first = lane()
  if (!(first instanceof Promise)) return true
  const stopping = (running: true | Promise<true>): Promise<true> =>
    Promise.resolve(running).catch((error: unknown) => {
      next = count
      throw error
    })
  const lanes = [stopping(first)]
  while (lanes.length < atOnce && next < count) lanes.push(stopping(startOf(lane)))
  return Promise.allSettled(lanes)
    .then(() => Promise.all(lanes))
    .then(() => true)
}

/** A lane that throws at once is a rejected one. */
async function startOf(lane: () => true | Promise<true>): Promise<true> {
  return await lane()
}

/** An item whose sequence ends early is an item all the same. */
function whole(goesOn: boolean | Promise<boolean>, check: () => void): true | Promise<true> {
  if (goesOn instanceof Promise) return goesOn.then(on => whole(on, check))
  check()
  return true
}

function itemsOf(value: Value): readonly Json[] {
  const json = jsonOfValue(value)
  if (Array.isArray(json)) return json
  throw new MediationFault({
    message: 'The message could not be divided',
    cause: 'the collection of foreach is no JSON array',
  })
}

/** Results replace the collection in the payload or in its variable; another expression is only read. */
function compileUpdate(expression: Expression): (message: Message, results: readonly Json[]) => void {
  if (expression.kind === 'json-path') {
    const { path } = expression
    return (message, results) => {
      const { json } = message
      if (json === undefined) return
      message.json = editAll(json, locate(path, json), () => results)
    }
  }
  if (expression.kind === 'property') {
    const { scope, name } = expression
    return (message, results) => message.set(scope, name, valueOfJson(results))
  }
  return () => undefined
}
