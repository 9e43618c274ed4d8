/**
 * `<rewrite>`: changes parts of a URL by rules. The URL is a property, or that of the request as its backend gets it.
 * The latter has the path behind the context of the API, its query, and the origin and user of an absolute destination
 * (To).
 */
import type { XmlElement } from '../../config/xml.ts'
import { compilePattern, type Pattern } from '../../runtime/pattern.ts'
import { mostOf } from '../flow-plan.ts'
import type { Expression } from '../expression.ts'
import { type CompileContext, mediator } from '../mediator.ts'
import type { Message } from '../message.ts'
import { compileMatcher } from '../pattern.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import { textOf } from '../value.ts'

/** Parts of a URL, '' for one that is missing; without the characters that divide them. */
interface UrlParts {
  protocol: string
  user: string
  host: string
  port: string
  path: string
  query: string
  ref: string
}

const FRAGMENTS = ['protocol', 'user', 'host', 'port', 'path', 'query', 'ref', 'full'] as const
type Fragment = (typeof FRAGMENTS)[number]
const ACTIONS = ['replace', 'append', 'prepend', 'set', 'remove'] as const

interface Action {
  readonly type: (typeof ACTIONS)[number]
  readonly fragment: Fragment
  /** null for `remove`. */
  readonly value: Expression | null
  /** The pattern of `replace`; '' otherwise. */
  readonly regex: string
}

type Condition =
  | { readonly kind: 'and' | 'or'; readonly of: readonly Condition[] }
  | { readonly kind: 'not'; readonly of: Condition }
  | {
      readonly kind: 'test'
      readonly type: 'url' | 'header' | 'param' | 'property'
      /** Fragment of the URL, or a name. */
      readonly source: string
      /** Value that must be the same, or a pattern of the whole text. */
      readonly value: string
      readonly isPattern: boolean
    }

interface Rule {
  readonly condition: Condition | null
  readonly actions: readonly Action[]
}

interface RewriteSettings {
  /** Properties of the default scope; '' for the URL of the request. */
  readonly from: string
  readonly to: string
  readonly rules: readonly Rule[]
}

const TARGET = 'REST_URL_POSTFIX'

export const rewrite = mediator<RewriteSettings>({
  name: 'rewrite',
  attributes: ['inProperty', 'outProperty'],
  elements: ['rewriterule'],

  parse(element, parser) {
    const rules = element.children.map(rule => parseRule(rule, parser))
    if (rules.length === 0) return parser.error(element, 'rewriterule', 'is missing', 'add <rewriterule>')
    if (!rules.every(rule => rule !== undefined)) return undefined
    return { from: element.attribute('inProperty'), to: element.attribute('outProperty'), rules }
  },

  needs({ rules }, context) {
    const values = rules.flatMap(({ actions }) => actions.flatMap(({ value }) => (value === null ? [] : [value])))
    return mostOf('heads', ...values.map(value => context.expression(value)))
  },

  compile({ from, to, rules }, context) {
    const compiled = rules.map(({ condition, actions }) => ({
      holds: condition === null ? () => true : compileCondition(condition, context),
      actions: actions.map(action => compileAction(action, context)),
    }))
    return message => {
      const parts = from === '' ? partsOfMessage(message) : partsOf(textOf(message.get('default', from)))
      for (const { holds, actions } of compiled) {
        if (holds(message, parts)) for (const act of actions) act(message, parts)
      }
      if (to !== '') message.set('default', to, textOfParts(parts))
      else {
        if (parts.host !== '') message.to = textOfParts(parts)
        message.set('axis2', TARGET, textOfParts({ ...parts, protocol: '', user: '', host: '', port: '', ref: '' }))
      }
      return true
    }
  },
})

function parseRule(rule: XmlElement, parser: SequenceParser): Rule | undefined {
  parser.checkAttributes(rule, [])
  parser.checkElements(rule, ['condition', 'action'])
  parser.checkNoText(rule)
  const given = parser.only(rule, 'condition')
  const condition = given === undefined ? null : parseOnly(given, parser)
  const actions = rule.children.filter(({ name }) => name === 'action').map(action => parseAction(action, parser))
  if (actions.length === 0) return parser.error(rule, 'action', 'is missing', 'add <action>')
  if (condition === undefined || !actions.every(action => action !== undefined)) return undefined
  return { condition, actions }
}

function parseOnly(element: XmlElement, parser: SequenceParser): Condition | undefined {
  parser.checkAttributes(element, [])
  const [only, second] = element.children
  if (only === undefined || second !== undefined) {
    return parser.error(element, '', 'expected one condition', 'put <and> or <or> around several')
  }
  return parseCondition(only, parser)
}

function parseCondition(element: XmlElement, parser: SequenceParser): Condition | undefined {
  const { name } = element
  if (name === 'not') {
    const of = parseOnly(element, parser)
    return of === undefined ? undefined : { kind: 'not', of }
  }
  if (name === 'and' || name === 'or') {
    parser.checkAttributes(element, [])
    const of = element.children.map(child => parseCondition(child, parser))
    return of.every(each => each !== undefined) ? { kind: name, of } : undefined
  }
  if (name !== 'equal' && name !== 'match') {
    return parser.error(element, '', 'is not a condition', 'known conditions are and, or, not, equal, match')
  }
  const expected = name === 'equal' ? 'value' : 'regex'
  parser.checkAttributes(element, ['type', 'source', expected])
  parser.checkElements(element, [])
  const type = parser.choice(element, 'type', ['url', 'header', 'param', 'property'], 'url')
  const value = expected === 'value' ? parser.required(element, 'value') : parser.pattern(element, 'regex')
  const source =
    type === 'url' ? parser.choice(element, 'source', FRAGMENTS, 'full') : parser.required(element, 'source')
  if (type === undefined || value === undefined || source === undefined) return undefined
  if (type === 'header') parser.requestFields.add(source.toLowerCase())
  return { kind: 'test', type, source, value, isPattern: name === 'match' }
}

function parseAction(action: XmlElement, parser: SequenceParser): Action | undefined {
  parser.checkAttributes(action, ['type', 'fragment', 'value', 'xpath', 'regex'])
  parser.checkElements(action, [])
  const type = parser.choice(action, 'type', ACTIONS, 'set')
  const fragment = parser.choice(action, 'fragment', FRAGMENTS, 'full')
  if (type === undefined || fragment === undefined) return undefined
  const regex = type === 'replace' ? parser.pattern(action, 'regex') : ''
  if (type !== 'replace' && action.has('regex')) {
    return parser.error(action, 'regex', 'has no effect without type="replace"', 'remove it')
  }
  if (type === 'remove') {
    if (action.has('value') || action.has('xpath')) {
      return parser.error(action, 'value', 'has no effect with type="remove"', 'remove it')
    }
    return { type, fragment, value: null, regex: '' }
  }
  if (action.has('value') === action.has('xpath')) {
    return parser.error(action, 'value', 'expected either value or xpath', 'give one of them')
  }
  const value: Expression | undefined = action.has('xpath')
    ? parser.expression(action, 'xpath')
    : { kind: 'literal', value: action.attribute('value') }
  return value === undefined || regex === undefined ? undefined : { type, fragment, value, regex }
}

type Holds = (message: Message, parts: UrlParts) => boolean

function compileCondition(condition: Condition, context: CompileContext): Holds {
  switch (condition.kind) {
    case 'not': {
      const holds = compileCondition(condition.of, context)
      return (message, parts) => !holds(message, parts)
    }
    case 'and':
    case 'or': {
      const all = condition.of.map(each => compileCondition(each, context))
      if (condition.kind === 'and') return (message, parts) => all.every(holds => holds(message, parts))
      return (message, parts) => all.some(holds => holds(message, parts))
    }
    case 'test': {
      const { type, source, value, isPattern } = condition
      const match = isPattern ? compileMatcher(value, context.warn) : null
      return (message, parts) => {
        const text = tested(type, source, message, parts)
        return match === null ? text === value : match(text) !== null
      }
    }
  }
}

function tested(type: string, source: string, message: Message, parts: UrlParts): string {
  if (type === 'url') return fragmentOf(parts, source as Fragment)
  if (type === 'header') return textOf(message.get('transport', source))
  if (type === 'param') return new URLSearchParams(parts.query).get(source) ?? ''
  return textOf(message.get('default', source))
}

function compileAction(
  { type, fragment, value, regex }: Action,
  { compileExpression, warn }: CompileContext,
): (message: Message, parts: UrlParts) => void {
  const evaluate = value === null ? () => '' : compileExpression(value)
  // In a literal, $1 is a group; a text of the message is only text.
  const isLiteral = value?.kind === 'literal'
  let pattern: Pattern | undefined
  return (message, parts) => {
    const before = fragmentOf(parts, fragment)
    const text = textOf(evaluate(message))
    if (type !== 'replace') {
      setFragment(parts, fragment, type === 'append' ? before + text : type === 'prepend' ? text + before : text)
      return
    }
    pattern ??= compilePattern(regex)
    const replacement = isLiteral ? text : text.replaceAll('$', '$$$$')
    try {
      setFragment(parts, fragment, pattern.matcher(before).replaceAll(replacement))
    } catch {
      warn('the value of an action names a group that its regex does not have')
    }
  }
}

function fragmentOf(parts: UrlParts, fragment: Fragment): string {
  return fragment === 'full' ? textOfParts(parts) : parts[fragment]
}

function setFragment(parts: UrlParts, fragment: Fragment, text: string): void {
  if (fragment === 'full') Object.assign(parts, partsOf(text))
  else parts[fragment] = text
}

/** RFC 3986 appendix B, with the authority divided. */
const URL_PARTS =
  /^(?:([^:/?#]+):)?(?:\/\/(?:([^/?#@]*)@)?(\[[^\]/?#]*\]|[^:/?#]*)(?::(\d*))?)?([^?#]*)(?:\?([^#]*))?(?:#([\s\S]*))?$/

function partsOf(text: string): UrlParts {
  const [, protocol = '', user = '', host = '', port = '', path = '', query = '', ref = ''] = URL_PARTS.exec(text) ?? []
  return { protocol, user, host, port, path, query, ref }
}

function partsOfMessage(message: Message): UrlParts {
  const target = partsOf(textOf(message.get('axis2', TARGET)))
  const { protocol, user, host, port } = partsOf(message.to)
  return { protocol, user, host, port, path: target.path, query: target.query, ref: '' }
}

function textOfParts({ protocol, user, host, port, path, query, ref }: UrlParts): string {
  const scheme = protocol === '' || host === '' ? '' : `${protocol}:`
  const authority = host === '' ? '' : `//${user === '' ? '' : `${user}@`}${host}${port === '' ? '' : `:${port}`}`
  const separator = authority !== '' && path !== '' && !path.startsWith('/') ? '/' : ''
  return `${scheme}${authority}${separator}${path}${query === '' ? '' : `?${query}`}${ref === '' ? '' : `#${ref}`}`
}
