/** Settings of `<enrich>`: what it reads, where it writes, and their parsing. */
import type { XmlElement } from '../../config/xml.ts'
import type { Expression, JsonPath, XPathExpression } from '../expression.ts'
import type { Scope } from '../message.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import type { XmlElementNode } from '../xml-tree.ts'

/** Header fields are set by `<property>` and `<header>`, which check names and values. */
type PropertyScope = Exclude<Scope, 'transport'>

interface Property {
  readonly kind: 'property'
  readonly scope: PropertyScope
  readonly name: string
}

export type Source =
  | { readonly kind: 'expression'; readonly expression: Expression }
  | { readonly kind: 'envelope' | 'body' }
  | { readonly kind: 'inline'; readonly content: XmlElementNode | string }
  /** Text of a local entry or file, read when a message comes. */
  | { readonly kind: 'entry'; readonly key: string }
  | Property

export type Target =
  | { readonly kind: 'json'; readonly path: JsonPath }
  | { readonly kind: 'xml'; readonly expression: XPathExpression }
  /** Renames the members that the path finds. */
  | { readonly kind: 'key'; readonly path: JsonPath }
  | { readonly kind: 'envelope' | 'body' }
  | Property

/** Parts of a body or property. */
export type Parts =
  | { readonly kind: 'json'; readonly paths: readonly JsonPath[] }
  | { readonly kind: 'xml'; readonly expression: XPathExpression }

const ACTIONS = ['replace', 'child', 'sibling', 'remove'] as const
export type Action = (typeof ACTIONS)[number]

export interface EnrichSettings {
  /** null: the action is `remove`. */
  readonly source: Source | null
  /** The parts that the action `remove` takes out of the target; null: all of it. */
  readonly removed: Parts | null
  /** The source stays where it is; false: an element that an XPath finds moves. */
  readonly isCopied: boolean
  readonly target: Target
  readonly action: Action
}

const TYPES = ['custom', 'envelope', 'body', 'property', 'variable', 'inline', 'key'] as const
/** A path that begins in a property. */
const INTO_PROPERTY = /^\s*\$\w+:[^/]+\//
const NO_PATH = 'is no path into the body'

export function parseEnrich(element: XmlElement, parser: SequenceParser): EnrichSettings | undefined {
  const [given, into] = [parser.only(element, 'source'), parser.only(element, 'target')]
  if (into === undefined) return parser.error(element, 'target', 'is missing', 'add <target>')
  const action = parser.choice(into, 'action', ACTIONS, 'replace')
  const target = parseTarget(into, parser)
  if (target === undefined || action === undefined) return undefined
  if (action !== 'replace' && target.kind === 'key') {
    return parser.error(into, 'action', 'has no meaning for a key', 'remove it', action)
  }
  if (action === 'sibling' && target.kind === 'property') {
    return parser.error(into, 'action', 'has no meaning for a property', 'replace it', action)
  }
  if (action === 'remove') {
    const removed = given === undefined ? null : parseRemoved(given, element, target, parser)
    return removed === undefined ? undefined : { source: null, removed, isCopied: true, target, action }
  }
  if (given === undefined) return parser.error(element, 'source', 'is missing', 'add <source>')
  const source = parseSource(given, parser)
  const clone = parser.choice(given, 'clone', ['true', 'false'], 'true')
  if (source === undefined || clone === undefined) return undefined
  return { source, removed: null, isCopied: clone === 'true', target, action }
}

/** The parts that the source of `remove` names: they leave a body or property. Undefined after an error. */
function parseRemoved(
  source: XmlElement,
  element: XmlElement,
  target: Target,
  parser: SequenceParser,
): Parts | null | undefined {
  const hasParts = target.kind === 'body' || target.kind === 'envelope' || target.kind === 'property'
  if (!hasParts || !source.has('xpath')) {
    parser.warn(element, 'source', 'has no effect', 'name what leaves a body or property by xpath, or remove <source>')
    return null
  }
  parser.checkAttributes(source, ['type', 'clone', 'xpath'])
  parser.checkElements(source, [])
  parser.checkNoText(source)
  const given = source.attribute('xpath')
  const list = /^\s*json-eval\(([\s\S]*)\)\s*$/.exec(given)?.[1]
  if (list !== undefined) {
    const parsed = pathsOf(list).map(path => parser.expressionIn(source, `json-eval(${path})`, 'xpath'))
    if (parsed.includes(undefined)) return undefined
    return { kind: 'json', paths: parsed.flatMap(each => (each?.kind === 'json-path' ? [each.path] : [])) }
  }
  const expression = parser.expression(source, 'xpath')
  if (expression === undefined || expression.kind === 'xpath') return expression && { kind: 'xml', expression }
  return parser.error(source, 'xpath', NO_PATH, 'write json-eval($.a,$.b) or //a', given)
}

/** The JSONPaths of a list, which commas separate: those outside of brackets and quotes. */
function pathsOf(list: string): readonly string[] {
  const paths: string[] = []
  let [from, depth] = [0, 0]
  for (let at = 0; at < list.length; at++) {
    const character = list[at]!
    if (character === '"' || character === "'") {
      const end = list.indexOf(character, at + 1)
      if (end === -1) break
      at = end
    } else if (character === '[' || character === '(') depth++
    else if (character === ']' || character === ')') depth--
    else if (character === ',' && depth === 0) {
      paths.push(list.slice(from, at).trim())
      from = at + 1
    }
  }
  return [...paths, list.slice(from).trim()]
}

function parseSource(source: XmlElement, parser: SequenceParser): Source | undefined {
  parser.checkAttributes(source, ['type', 'clone', 'xpath', 'property', 'key'])
  const type = parser.choice(source, 'type', TYPES, 'custom')
  if (type !== 'inline') {
    parser.checkElements(source, [])
    parser.checkNoText(source)
  }
  switch (type) {
    case undefined:
      return undefined
    case 'custom': {
      const expression = parser.expression(source, 'xpath')
      return expression === undefined ? undefined : { kind: 'expression', expression }
    }
    case 'property':
    case 'variable': {
      const name = parser.required(source, 'property')
      return name === undefined
        ? undefined
        : { kind: 'property', scope: type === 'variable' ? 'variable' : 'default', name }
    }
    case 'inline':
      return inlineSource(source, parser)
    case 'key':
      return parser.error(source, 'type', 'is only for a target', 'write the content inline', 'key')
    default:
      return { kind: type }
  }
}

function inlineSource(source: XmlElement, parser: SequenceParser): Source | undefined {
  const [inner, second] = source.children
  if (source.has('key')) {
    const key = parser.required(source, 'key')
    if (key === undefined) return undefined
    if (inner !== undefined || source.text !== '') {
      return parser.error(source, '', 'has both content and key', 'keep one of them')
    }
    parser.uses(source, 'text', key)
    return { kind: 'entry', key }
  }
  if (second !== undefined) return parser.error(second, '', 'is a second element', 'put one element around both')
  if (inner !== undefined) return { kind: 'inline', content: parser.tree(inner) }
  return { kind: 'inline', content: source.text.trim() }
}

function parseTarget(target: XmlElement, parser: SequenceParser): Target | undefined {
  parser.checkAttributes(target, ['type', 'action', 'xpath', 'property'])
  parser.checkElements(target, [])
  parser.checkNoText(target)
  const type = parser.choice(target, 'type', TYPES, 'custom')
  if (type === undefined) return undefined
  if (type === 'inline') return parser.error(target, 'type', 'is only for a source', 'name the place', 'inline')
  if (type === 'envelope' || type === 'body') return { kind: type }
  if (type === 'property' || type === 'variable') {
    const name = parser.required(target, 'property')
    return name === undefined ? undefined : { kind: 'property', scope: type === 'variable' ? type : 'default', name }
  }
  const expression = parser.expression(target, 'xpath')
  if (expression === undefined) return undefined
  if (expression.kind === 'json-path') return { kind: type === 'key' ? 'key' : 'json', path: expression.path }
  if (expression.kind === 'xpath' && type === 'custom') {
    if (INTO_PROPERTY.test(expression.text)) {
      const hint = 'write a path into the body, or the whole property: $ctx:name'
      parser.warn(target, 'xpath', 'changes nothing: nodes of a property are copies of it', hint)
    }
    return { kind: 'xml', expression }
  }
  if (expression.kind === 'property' && type === 'custom') {
    const { scope, name } = expression
    if (scope !== 'transport' && scope !== 'func') return { kind: 'property', scope, name }
    const why = scope === 'func' ? 'is a parameter of a template, which does not change' : 'is a header field'
    return parser.error(target, 'xpath', why, 'set it by <property>', target.attribute('xpath'))
  }
  const hint = type === 'key' ? 'write json-eval($.a)' : 'write json-eval($.a) or //a'
  return parser.error(target, 'xpath', NO_PATH, hint, target.attribute('xpath'))
}
