/**
 * `<iterate>`: runs its target on a copy of the message for each item that an expression finds: of a JSON array, or
 * each node of XML. The item is the payload of the copy, or takes a place in the payload (`attachPath`): it replaces
 * the JSON value there, or is the only item within the element there.
 */
import { servicesOf } from '../backend-calls.ts'
import { runCopies, runInBackground } from '../copies.ts'
import type { Expression, JsonPath, XPathExpression } from '../expression.ts'
import { compileNodes } from '../expression-compiler.ts'
import { editAt, locate } from '../json-edit.ts'
import { type CompileContext, mediator } from '../mediator.ts'
import { MediationFault } from '../mediation-fault.ts'
import type { Message } from '../message.ts'
import type { Json, Value } from '../value.ts'
import { XmlDocument } from '../xml-edit.ts'
import { treeOf } from '../xpath-expression.ts'
import {
  compileTarget,
  COPY_ATTRIBUTES,
  type CopySettings,
  type CopyTarget,
  copyTo,
  parseCopies,
  parseTarget,
  runsInBackground,
} from './clone.ts'

interface IterateSettings extends CopySettings {
  readonly expression: Expression
  /** Where an item goes in the payload; null: it is the payload. */
  readonly attach: JsonPath | XPathExpression | null
  readonly target: CopyTarget
}

type Item = { readonly kind: 'json'; readonly value: Json } | { readonly kind: 'xml'; readonly value: Value }

export const iterate = mediator<IterateSettings>({
  name: 'iterate',
  attributes: [...COPY_ATTRIBUTES, 'expression', 'preservePayload', 'attachPath'],
  elements: ['target'],

  parse(element, parser) {
    const settings = parseCopies(element, parser)
    const expression = parser.expression(element, 'expression')
    const preserves = parser.flag(element, 'preservePayload')
    const given = parser.only(element, 'target')
    if (given === undefined) return parser.error(element, '', 'has no target', 'add <target>')
    const target = parseTarget(given, parser)
    const path = preserves === true && element.has('attachPath') ? parser.expression(element, 'attachPath') : null
    if (preserves === true && path === null) {
      return parser.error(element, 'attachPath', 'is missing', 'name the place of an item in the payload')
    }
    if (settings === undefined || expression === undefined || target === undefined || path === undefined) {
      return undefined
    }
    if (path === null) return { ...settings, expression, attach: null, target }
    if (path.kind === 'json-path') return { ...settings, expression, attach: path.path, target }
    if (path.kind === 'xpath' && expression.kind === 'xpath') return { ...settings, expression, attach: path, target }
    const hint = 'write json-eval($.place) for JSON, or an XPath beside an XPath as expression'
    return parser.error(element, 'attachPath', 'is no path into the payload', hint, element.attribute('attachPath'))
  },

  needs: () => 'worker',

  compile({ expression, attach, target, ...settings }, context) {
    const evaluate = context.compileExpression(expression)
    const attached = compileAttached(expression, attach, context)
    const run = compileTarget(target, settings.gathers, context)
    const background = context.define(run)
    return async message => {
      const items = itemsOf(evaluate(message))
      servicesOf(message).claimCopies(items.length)
      if (items.length === 0) return true
      const copies = attached?.(message, target) ?? items.map(item => copyOf(message, item, attach, target))
      if (!runsInBackground(settings, [target])) return runCopies(message, copies, run, settings)
      await runInBackground(copies, background)
      return true
    }
  },
})

function itemsOf(value: Value): readonly Item[] {
  if (typeof value !== 'object') return value === '' ? [] : [{ kind: 'json', value }]
  if (value.kind === 'json') {
    const items: readonly Json[] = Array.isArray(value.value) ? value.value : [value.value]
    return items.map(item => ({ kind: 'json', value: item }))
  }
  return value.nodes.map(node => ({ kind: 'xml', value: { kind: 'xml', nodes: [node] } }))
}

/** Makes the copies of XML with an attachPath; null for other copies. */
function compileAttached(
  expression: Expression,
  attach: IterateSettings['attach'],
  { warn }: CompileContext,
): ((message: Message, target: CopyTarget) => readonly Message[]) | null {
  if (attach === null || !('kind' in attach) || expression.kind !== 'xpath') return null
  const [findItems, findPlace] = [compileNodes(expression, warn), compileNodes(attach, warn)]
  return (message, target) => {
    const document = new XmlDocument(message.payload)
    const nodes = findItems(message, document.root)
    if (nodes.length === 0) return []
    for (const node of nodes) document.remove(node)
    const rest = document.payload()
    const [place] = findPlace(message, new XmlDocument(rest).root)
    if (place === undefined) throw noPlace()
    return nodes.map(node => {
      const copy = copyTo(message, target)
      const own = new XmlDocument(rest)
      own.append(place, [treeOf(node)])
      copy.payload = own.payload()
      return copy
    })
  }
}

function noPlace(): MediationFault {
  return new MediationFault({ message: 'The payload has no such place', cause: 'attachPath finds no place' })
}

function copyOf(message: Message, item: Item, attach: IterateSettings['attach'], target: CopyTarget): Message {
  const copy = copyTo(message, target)
  if (item.kind === 'xml') {
    const [node] = (item.value as Extract<Value, { kind: 'xml' }>).nodes
    copy.payload = typeof node === 'string' ? { kind: 'text', text: node } : { kind: 'xml', root: node! }
    return copy
  }
  if (attach === null || 'kind' in attach) copy.json = item.value
  else {
    const json = message.json
    const [place] = json === undefined ? [] : locate(attach, json)
    if (place === undefined) throw noPlace()
    copy.json = editAt(json!, place, () => item.value)
  }
  return copy
}
