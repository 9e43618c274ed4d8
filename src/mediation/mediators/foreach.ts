/**
 * `<foreach>`: runs a sequence for each part of the message that `expression` finds, in place, or for each item of
 * `collection`, on a copy of the message (`foreach-collection.ts`).
 */
import type { XmlElement } from '../../config/xml.ts'
import { mostOf } from '../flow-plan.ts'
import type { Expression, JsonPath, XPathExpression } from '../expression.ts'
import { compileNodes } from '../expression-compiler.ts'
import { editAll, type Location, locate, valueAt } from '../json-edit.ts'
import { nodesOfJson } from '../json-xml.ts'
import { mediator, type CompileContext, type Run } from '../mediator.ts'
import type { Payload } from '../message.ts'
import { jsonOfPayload, valueOfPayload } from '../payload-value.ts'
import type { Branch } from '../sequence-plan.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import type { Json } from '../value.ts'
import { XmlDocument } from '../xml-edit.ts'
import { element as xmlElement, localName, type XmlElementNode, type XmlNode } from '../xml-tree.ts'
import { treeOf } from '../xpath-expression.ts'
import {
  andThen,
  COLLECTION_ATTRIBUTES,
  type Collection,
  overCollection,
  parseCollection,
} from './foreach-collection.ts'

/** Parts of the payload, which the results replace. */
interface Parts {
  readonly kind: 'parts'
  readonly expression: Expression
  /** In front of the names of the properties of an item: its number from 0, and the whole payload. */
  readonly prefix: string
}

interface ForeachSettings {
  readonly over: Parts | Collection
  readonly body: Branch
}

const COUNTER = 'FOREACH_COUNTER'
const ORIGINAL = 'FOREACH_ORIGINAL_MESSAGE'

export const foreach = mediator<ForeachSettings>({
  name: 'foreach',
  attributes: ['expression', 'sequence', 'id', 'collection', ...COLLECTION_ATTRIBUTES],
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
    if (over.kind === 'collection') return overCollection(over, body, run, context)
    const { expression, prefix } = over
    const counter = prefix + COUNTER
    const loop =
      expression.kind === 'json-path'
        ? overJson(expression.path, counter, run)
        : overXml(expression as XPathExpression, counter, run, context)
    return message => {
      message.set('default', prefix + ORIGINAL, valueOfPayload(message.payload))
      return andThen(loop(message), () => message.remove('default', prefix + ORIGINAL))
    }
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

function parseParts(element: XmlElement, parser: SequenceParser): Parts | undefined {
  for (const name of COLLECTION_ATTRIBUTES) {
    if (element.has(name)) parser.error(element, name, 'needs collection', 'add collection in place of expression')
  }
  const expression = parser.expression(element, 'expression')
  if (expression === undefined) return undefined
  if (expression.kind !== 'json-path' && expression.kind !== 'xpath') {
    const hint = 'write json-eval($.a) or //a'
    return parser.error(element, 'expression', 'is no path into the body', hint, element.attribute('expression'))
  }
  const id = element.attribute('id')
  return { kind: 'parts', expression, prefix: id === '' ? '' : `${id}_` }
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
        document.replace(nodes[at]!, resultNodes(root, message.payload))
      })
    })
    return andThen(goesOn, () => {
      message.payload = nodes.length === 0 ? payload : document.payload()
    })
  }
}

/** The nodes that take the place of an element. JSON is the content of an element of that name, as in its XML. */
function resultNodes(replaced: XmlElementNode, payload: Payload | null): readonly XmlNode[] {
  if (payload?.kind === 'json') return [xmlElement(localName(replaced.name), nodesOfJson(jsonOfPayload(payload)))]
  return payload?.kind === 'xml' ? [payload.root] : []
}
