/** Parses a FreeMarker template to plain data. */
import { nearest } from '../../config/nearest.ts'
import { DirectiveParser } from './directive-parser.ts'
import { ExpressionParser } from './expression-parser.ts'
import { type Directive, lineAt, type TemplatePlan } from './plan.ts'
import { piecesOf, type Piece, strippedTexts, type TagPiece } from './tags.ts'
import { TemplateSyntaxError } from './template-error.ts'

/** What takes the place of directives that are absent. */
const REFUSED: Readonly<Record<string, string>> = {
  include: 'write its text here, or name one file with <format key>',
  import: 'write its macros here',
  visit: 'use <#list node?children as child>',
  recurse: 'use <#list node?children as child>',
  fallback: 'use <#list node?children as child>',
  outputformat: 'use <#escape x as x?xml>',
  autoesc: 'use <#escape x as x?xml>',
  noautoesc: 'leave it out, because nothing is escaped without ?xml or <#escape>',
  foreach: 'use <#list items as item>',
  transform: 'use a macro',
  call: 'use <@name>',
  on: 'use <#case>',
}
/** Directives that stand within others alone. */
const WITHIN: Readonly<Record<string, string>> = {
  else: 'if',
  elseif: 'if',
  case: 'switch',
  default: 'switch',
  recover: 'attempt',
}
const TRIMS = ['t', 'lt', 'rt', 'nt', 'flush']
const DEPTH_MAX = 100

/** Throws TemplateSyntaxError. */
export function parseTemplate(source: string): TemplatePlan {
  return new TemplateParser(source).template()
}

/** Why a text is no template that can be run, with its line; '' for none. */
export function templateProblem(source: string): string {
  try {
    parseTemplate(source)
    return ''
  } catch (error) {
    if (!(error instanceof TemplateSyntaxError)) throw error
    return `${error.message}, in its line ${lineAt(source, error.at)}: ${error.hint}`
  }
}

/** What ended a body. */
export interface BodyEnd {
  readonly body: readonly Directive[]
  readonly tag: TagPiece
}

export class TemplateParser {
  readonly #source: string
  readonly #pieces: readonly Piece[]
  #texts: ReadonlyMap<number, string> = new Map()
  #at = 0
  #depth = 0
  readonly #directives = new DirectiveParser(this)

  constructor(source: string) {
    this.#source = source
    this.#pieces = piecesOf(source)
  }

  template(): TemplatePlan {
    const { namespaces, strips } = this.#header()
    if (strips) this.#texts = strippedTexts(this.#pieces)
    const { body, tag } = this.#content([])
    if (tag !== null) this.fail(tag, `has </#${tag.name}> without its beginning`, 'remove it')
    return { source: this.#source, body: strips ? withoutGaps(body, true) : body, namespaces }
  }

  fail({ from }: { readonly from: number }, why: string, hint?: string): never {
    throw new TemplateSyntaxError(why, from, hint)
  }

  /** The content of a tag up to one of the names, as `else` or `/if`. */
  body(tag: TagPiece, ends: readonly string[]): BodyEnd {
    if (++this.#depth > DEPTH_MAX) this.fail(tag, `is nested more than ${DEPTH_MAX} levels deep`, 'divide it')
    const content = this.#content(ends)
    this.#depth--
    if (content.tag === null) this.fail(tag, `has <#${tag.name}> without its end`, `add </#${tag.name}>`)
    return { body: withoutGaps(content.body, false), tag: content.tag }
  }

  /** The content of `<#sep>` up to its end, or up to that of the list, which stays to be read. */
  sepBody(tag: TagPiece): readonly Directive[] {
    const { body, tag: end } = this.body(tag, ['/sep', '/items', '/list', 'else'])
    if (end.name !== 'sep') this.#at--
    return body
  }

  #content(ends: readonly string[]): { readonly body: readonly Directive[]; readonly tag: TagPiece | null } {
    const body: Directive[] = []
    for (; this.#at < this.#pieces.length; ) {
      const at = this.#at++
      const piece = this.#pieces[at]!
      if (piece.kind === 'text') {
        const text = this.#texts.get(at) ?? piece.text
        if (text !== '') body.push({ kind: 'output', text })
      } else if (piece.kind === 'print') body.push(this.#directives.print(piece))
      // A comment leaves a mark, because white space between it and an assignment goes.
      else if (piece.kind === 'comment') body.push({ kind: 'output', text: '' })
      else {
        const name = piece.kind === 'close' ? `/${piece.name}` : piece.name
        if (ends.includes(name)) return { body, tag: piece }
        body.push(...this.#tag(piece))
      }
    }
    return { body, tag: null }
  }

  #tag(tag: TagPiece): readonly Directive[] {
    const { kind, name } = tag
    if (kind === 'close') {
      if (name === 'noparse' || name === 'comment') return []
      return this.fail(tag, `has </#${name}> where it ends nothing`, 'remove it')
    }
    if (TRIMS.includes(name) || name === 'noparse' || name === 'comment') return []
    const directive = this.#directives.parse(tag)
    if (directive !== undefined) return directive
    if (Object.hasOwn(WITHIN, name)) return this.fail(tag, `has <#${name}> outside of <#${WITHIN[name]}>`, 'move it')
    const near = nearest(name, this.#directives.names)
    const remedy = Object.hasOwn(REFUSED, name) ? REFUSED[name] : undefined
    const hint = remedy ?? (near === '' ? 'write it with others, or in <script>' : `<#${near}>?`)
    return this.fail(tag, `has <#${name}>, which is not supported`, hint)
  }

  /** `<#ftl …>`, which only white space may precede. */
  #header(): { readonly namespaces: TemplatePlan['namespaces']; readonly strips: boolean } {
    const [first, second] = this.#pieces
    const isIndented = first?.kind === 'text' && first.text.trim() === ''
    const tag = isIndented ? second : first
    if (tag?.kind !== 'open' || tag.name !== 'ftl') return { namespaces: [], strips: true }
    this.#at = isIndented ? 2 : 1
    const parser = new ExpressionParser(tag.tokens)
    let strips = true
    let namespaces: TemplatePlan['namespaces'] = []
    while (!parser.isAtEnd) {
      const name = parser.name('a parameter')
      parser.requires('=')
      const value = parser.expression()
      const given = value.kind === 'literal' ? value.value : undefined
      if (name === 'strip_whitespace' && typeof given === 'boolean') strips = given
      else if (name === 'ns_prefixes' && value.kind === 'hash') {
        namespaces = value.entries.map(([prefix, namespace]) => [this.#literal(prefix), this.#literal(namespace)])
      } else if (name === 'output_format' && ['undefined', 'plainText', 'JSON'].includes(String(given))) continue
      else if (name !== 'encoding') {
        const hint = name === 'output_format' ? 'use <#escape x as x?xml>' : 'known are ns_prefixes, strip_whitespace'
        this.fail(tag, `has <#ftl ${name}>, which is not supported in this form`, hint)
      }
    }
    return { namespaces, strips }
  }

  #literal(term: { readonly kind: string; readonly from: number; readonly value?: unknown }): string {
    if (term.kind === 'literal' && typeof term.value === 'string') return term.value
    return this.fail(term, 'has a namespace that is no text in quotes')
  }
}

const SILENT = ['assign', 'capture', 'macro', 'setting']

/** Without white space between directives that write nothing, and at the ends of the template beside them. */
function withoutGaps(body: readonly Directive[], isWhole: boolean): readonly Directive[] {
  const isSilent = (at: number): boolean => {
    const directive = body[at]
    if (directive === undefined) return isWhole
    return SILENT.includes(directive.kind) || (directive.kind === 'output' && directive.text === '')
  }
  return body.filter((directive, at) => {
    if (directive.kind !== 'output') return true
    return directive.text.trim() !== '' || (directive.text !== '' && !(isSilent(at - 1) && isSilent(at + 1)))
  })
}
