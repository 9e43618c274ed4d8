/**
 * `<foreach collection="…">`: runs a sequence for each item of a JSON array, or each element that an XPath finds, on a
 * copy of the message. Items run beside each other where they wait; their results keep the order.
 */
import type { XmlElement } from '../../config/xml.ts'
import { servicesOf } from '../backend-calls.ts'
import { runInBackground } from '../copies.ts'
import type { Expression, XPathExpression } from '../expression.ts'
import { compileNodes } from '../expression-compiler.ts'
import { editAll, jsonOfValue, locate } from '../json-edit.ts'
import { jsonPayload } from '../formats/json-text.ts'
import { elementWithin } from '../json-xml.ts'
import { MediationFault } from '../mediation-fault.ts'
import type { CompileContext, Run } from '../mediator.ts'
import type { Message, Payload } from '../message.ts'
import { jsonOfPayload } from '../payload-value.ts'
import type { Branch } from '../sequence-plan.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import { type Value, valueOfJson } from '../value.ts'
import { XmlDocument } from '../xml-edit.ts'
import { element as xmlElement, type XmlNode } from '../xml-tree.ts'
import { treeOf } from '../xpath-expression.ts'
import { compileTarget } from './clone.ts'

export interface Collection {
  readonly kind: 'collection'
  readonly expression: Expression
  /** Variable of the number of an item from 0; '' for none. */
  readonly counter: string
  /** Variable of the results; '' for none. */
  readonly variable: string
  /** Element that encloses the results as XML; '': they are a JSON array. */
  readonly enclosing: string
  /** The results replace the collection. */
  readonly isUpdated: boolean
  /** Items that run at once; 0: they run in the background, and nothing has their results. */
  readonly atOnce: number
}

/** Attributes of the result under both of their names. */
const VARIABLES = ['target-variable', 'result-target']
const TYPES = ['result-content-type', 'result-type']
const ENCLOSING = 'result-enclosing-element'
const WITHOUT_RESULTS = 'continue-without-aggregation'
const PARALLEL = 'parallel-execution'
export const COLLECTION_ATTRIBUTES = [
  ...['counter-variable', 'update-original', PARALLEL, WITHOUT_RESULTS, ENCLOSING],
  ...[...VARIABLES, ...TYPES],
]
/** Each item may wait for a backend. */
const AT_ONCE_MAX = 16

/** Undefined after an error. */
export function parseCollection(element: XmlElement, parser: SequenceParser): Collection | undefined {
  for (const name of ['expression', 'id']) {
    if (element.has(name)) parser.error(element, name, 'has no effect with collection', 'remove it')
  }
  const expression = parser.expression(element, 'collection')
  const updates = parser.choice(element, 'update-original', ['true', 'false'], 'true')
  const parallel = parser.choice(element, PARALLEL, ['true', 'false'], 'true')
  const withoutResults = parser.flag(element, WITHOUT_RESULTS)
  const type = parser.choice(element, given(element, TYPES), ['JSON', 'XML'], 'JSON')
  const enclosing = type === 'XML' ? parser.required(element, ENCLOSING) : ''
  if (expression === undefined || updates === undefined || parallel === undefined) return undefined
  if (withoutResults === undefined || enclosing === undefined) return undefined
  const variable = element.attribute(given(element, VARIABLES))
  const atOnce = withoutResults ? 0 : parallel === 'true' ? AT_ONCE_MAX : 1
  const isUpdated = updates === 'true' && variable === ''
  const counter = element.attribute('counter-variable')
  return { kind: 'collection', expression, counter, variable, enclosing, isUpdated, atOnce }
}

/** The name of an attribute that the element uses; the first one if none. */
function given(element: XmlElement, names: readonly string[]): string {
  return names.find(name => element.has(name)) ?? names[0]!
}

/** Runs `last` after all items, unless the flow has ended. */
export function andThen(goesOn: boolean | Promise<boolean>, last: () => void): boolean | Promise<boolean> {
  if (goesOn instanceof Promise) return goesOn.then(on => andThen(on, last))
  if (goesOn) last()
  return goesOn
}

/** The items of a message, and what puts their results in their place; undefined for an item that was dropped. */
interface Items {
  readonly count: number
  payloadAt(at: number): Payload
  replace(results: readonly (Payload | null | undefined)[]): void
}

/** `run`: the sequence `body`, on a copy. */
export function overCollection(over: Collection, body: Branch, run: Run, context: CompileContext): Run {
  const find = compileItems(over.expression, context)
  const { counter, atOnce } = over
  const copyFor = (message: Message, payload: Payload, at: number): Message => {
    const copy = message.copy()
    copy.payload = payload
    if (counter !== '') copy.set('variable', counter, at)
    return copy
  }
  if (atOnce === 0) {
    const sequence = context.define(compileTarget({ ...body, endpoint: null, to: '' }, [], context))
    return async message => {
      const items = find(message)
      servicesOf(message).claimCopies(items.count)
      const copies = Array.from({ length: items.count }, (_, at) => copyFor(message, items.payloadAt(at), at))
      await runInBackground(copies, sequence)
      return true
    }
  }
  return message => {
    const items = find(message)
    const results: (Payload | null | undefined)[] = []
    let ending: Message | null = null
    const each = (at: number): boolean | Promise<boolean> => {
      const copy = copyFor(message, items.payloadAt(at), at)
      const before = copy.steps
      return whenOver(run(copy), () => {
        message.steps += copy.steps - before
        if (copy.outcome === 'faulted') throw new MediationFault(copy.fault!)
        if (copy.outcome === 'ended') results[at] = copy.payload
        else if (copy.outcome !== 'dropped') ending ??= copy
        return ending === null
      })
    }
    const end = (): boolean => {
      if (ending !== null) {
        message.adopt(ending)
        return false
      }
      finish(over, message, items, results)
      return true
    }
    const running = inLanes(items.count, atOnce, each)
    return running instanceof Promise ? running.then(end) : end()
  }
}

function finish(
  { variable, enclosing, isUpdated }: Collection,
  message: Message,
  items: Items,
  results: readonly (Payload | null | undefined)[],
): void {
  const kept = Array.from(results).filter(result => result !== undefined)
  if (variable === '') {
    if (isUpdated) items.replace(results)
  } else if (enclosing === '') message.set('variable', variable, { kind: 'json', value: kept.map(jsonOfPayload) })
  else message.set('variable', variable, { kind: 'xml', nodes: [xmlElement(enclosing, kept.flatMap(nodesOf))] })
}

/** The result as nodes of XML. */
function nodesOf(payload: Payload | null): readonly XmlNode[] {
  if (payload === null) return []
  return [payload.kind === 'xml' ? payload.root : elementWithin(jsonOfPayload(payload))]
}

/**
 * Runs `each` for every index, up to `atOnce` that wait at a time. No further index begins after one has thrown or
 * returned false; an error is thrown when those that run have ended.
 */
function inLanes(count: number, atOnce: number, each: (at: number) => boolean | Promise<boolean>): unknown {
  let next = 0
  const stop = (): void => {
    next = count
  }
  const lane = (): true | Promise<true> => {
    while (next < count) {
      const goesOn = each(next++)
      if (goesOn instanceof Promise) {
        return goesOn.then(on => {
          if (!on) stop()
          return lane()
        })
      }
      if (!goesOn) stop()
    }
    return true
  }
  const first = lane()
  if (!(first instanceof Promise)) return true
  const stopping = (running: true | Promise<true>): Promise<true> =>
    Promise.resolve(running).catch((error: unknown) => {
      stop()
      throw error
    })
  const lanes = [stopping(first)]
  while (lanes.length < atOnce && next < count) lanes.push(stopping(startOf(lane)))
  return Promise.allSettled(lanes).then(() => Promise.all(lanes))
}

/** A lane that throws at once is a rejected one. */
async function startOf(lane: () => true | Promise<true>): Promise<true> {
  return await lane()
}

function whenOver(goesOn: boolean | Promise<boolean>, check: () => boolean): boolean | Promise<boolean> {
  return goesOn instanceof Promise ? goesOn.then(check) : check()
}

function compileItems(expression: Expression, context: CompileContext): (message: Message) => Items {
  if (expression.kind === 'xpath') return compileNodesOf(expression, context)
  const evaluate = context.compileExpression(expression)
  const update = compileUpdate(expression)
  return message => {
    const value = evaluate(message)
    if (typeof value === 'object' && value.kind === 'xml') {
      return {
        count: value.nodes.length,
        payloadAt: at => payloadOfNode(value.nodes[at]!),
        replace: results => update(message, { kind: 'xml', nodes: results.flatMap(result => nodesOf(result ?? null)) }),
      }
    }
    const json = jsonOfValue(value)
    if (!Array.isArray(json)) throw notDivided()
    return {
      count: json.length,
      payloadAt: at => jsonPayload(json[at]!),
      replace: results => {
        const kept = Array.from(results).filter(result => result !== undefined)
        update(message, valueOfJson(kept.map(jsonOfPayload)))
      },
    }
  }
}

function notDivided(): MediationFault {
  return new MediationFault({
    message: 'The message could not be divided',
    cause: 'the collection of foreach is no JSON array',
  })
}

function payloadOfNode(node: XmlNode): Payload {
  return typeof node === 'string' ? { kind: 'text', text: node } : { kind: 'xml', root: node }
}

/** Elements of the payload, each of which its result replaces. */
function compileNodesOf(expression: XPathExpression, { warn }: CompileContext): (message: Message) => Items {
  const find = compileNodes(expression, warn)
  return message => {
    const document = new XmlDocument(message.payload)
    const nodes = find(message, document.root)
    return {
      count: nodes.length,
      payloadAt: at => payloadOfNode(treeOf(nodes[at]!)),
      replace: results => {
        for (const [at, node] of nodes.entries()) document.replace(node, nodesOf(results[at] ?? null))
        if (nodes.length > 0) message.payload = document.payload()
      },
    }
  }
}

/** Results replace the collection in the payload or in its variable; another expression is only read. */
function compileUpdate(expression: Expression): (message: Message, results: Value) => void {
  if (expression.kind === 'json-path') {
    const { path } = expression
    return (message, results) => {
      const { json } = message
      if (json !== undefined) message.json = editAll(json, locate(path, json), () => jsonOfValue(results))
    }
  }
  const place = expression.kind === 'path' ? expression.of : expression
  if (place.kind !== 'property' || place.scope === 'func') return () => undefined
  const { scope, name } = place
  if (expression.kind !== 'path') return (message, results) => message.set(scope, name, results)
  const { path } = expression
  return (message, results) => {
    const json = jsonOfValue(message.get(scope, name) ?? '')
    message.set(scope, name, valueOfJson(editAll(json, locate(path, json), () => jsonOfValue(results))))
  }
}
