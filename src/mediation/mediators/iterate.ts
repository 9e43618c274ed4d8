/**
 * `<iterate>`: runs its target on a copy of the message for each item that an expression finds: of a JSON array, or
 * each node of XML. The item is the payload of the copy, or takes a place in the payload (`attachPath`).
 */
import { servicesOf } from '../backend-calls.ts'
import { runCopies, runInBackground } from '../copies.ts'
import type { Expression, JsonPath } from '../expression.ts'
import { editAt, locate } from '../json-edit.ts'
import { mediator } from '../mediator.ts'
import { MediationFault } from '../mediation-fault.ts'
import type { Message } from '../message.ts'
import type { Json, Value } from '../value.ts'
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
  readonly attach: JsonPath | null
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
    if (path?.kind !== 'json-path' && path !== null && path !== undefined) {
      return parser.error(element, 'attachPath', 'is supported for JSON only', 'write json-eval($.place)')
    }
    if (settings === undefined || expression === undefined || target === undefined || path === undefined) {
      return undefined
    }
    return { ...settings, expression, attach: path === null ? null : path.path, target }
  },

  needs: () => 'worker',

  compile({ expression, attach, target, ...settings }, context) {
    const evaluate = context.compileExpression(expression)
    const run = compileTarget(target, settings, context)
    const background = context.define(run)
    return async message => {
      const items = itemsOf(evaluate(message))
      servicesOf(message).claimCopies(items.length)
      if (items.length === 0) return true
      const copies = items.map(item => copyOf(message, item, attach, target.to))
      if (!runsInBackground(settings, [target])) return runCopies(message, copies, run, settings.isSequential)
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

function copyOf(message: Message, item: Item, attach: JsonPath | null, to: string): Message {
  const copy = copyTo(message, to)
  if (item.kind === 'xml') {
    const [node] = (item.value as Extract<Value, { kind: 'xml' }>).nodes
    copy.payload = typeof node === 'string' ? { kind: 'text', text: node } : { kind: 'xml', root: node! }
    return copy
  }
  if (attach === null) copy.json = item.value
  else {
    const json = message.json
    const [place] = json === undefined ? [] : locate(attach, json)
    if (place === undefined) {
      throw new MediationFault({ message: 'The payload has no such place', cause: 'attachPath finds no place' })
    }
    copy.json = editAt(json!, place, () => item.value)
  }
  return copy
}
