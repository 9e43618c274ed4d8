/** Divides a template into texts, interpolations and tags, and strips white space around tags. */
import { type Token, tokensIn } from './lexer.ts'
import { TemplateSyntaxError } from './template-error.ts'

export type Piece =
  | { readonly kind: 'text'; readonly text: string; readonly from: number; readonly to: number }
  | { readonly kind: 'print'; readonly tokens: readonly Token[]; readonly from: number; readonly to: number }
  | { readonly kind: 'comment'; readonly from: number; readonly to: number }
  | TagPiece

/** `<#name …>` and `</#name>`; `name` is `@` for a call of a macro. */
export interface TagPiece {
  readonly kind: 'open' | 'close'
  readonly name: string
  readonly tokens: readonly Token[]
  /** `<#name …/>`. */
  readonly isEmpty: boolean
  readonly from: number
  readonly to: number
}

const BEGINNING = /\$\{|#\{|<#--|<\/?[#@]/g
const TAG_NAME = /[A-Za-z_]+/y
/** White space goes with these tags, on the left, on the right, or not at all. */
const TRIMS: Readonly<Record<string, readonly ('left' | 'right')[]>> = {
  t: ['left', 'right'],
  lt: ['left'],
  rt: ['right'],
  nt: [],
}

/** Throws TemplateSyntaxError. */
export function piecesOf(source: string): readonly Piece[] {
  const pieces: Piece[] = []
  let from = 0
  const text = (to: number): void => {
    if (to > from) pieces.push({ kind: 'text', text: source.slice(from, to), from, to })
  }
  for (let found = nextBeginning(source, 0); found !== null; found = nextBeginning(source, from)) {
    text(found.index)
    const piece = pieceAt(source, found[0], found.index)
    pieces.push(piece)
    from = piece.to
    const plain = piece.kind === 'open' ? /^(noparse|comment)$/.exec(piece.name)?.[1] : undefined
    if (plain !== undefined) {
      const close = new RegExp(`</#(?:${plain}|${plain === 'noparse' ? 'noParse' : plain})\\s*>`, 'g')
      close.lastIndex = from
      const end = close.exec(source)
      if (end === null) throw new TemplateSyntaxError(`has no </#${plain}>`, piece.from, 'add it')
      if (plain === 'noparse') text(end.index)
      const tag = { kind: 'close', name: plain, tokens: [], isEmpty: false } as const
      pieces.push({ ...tag, from: end.index, to: close.lastIndex })
      from = close.lastIndex
    }
  }
  text(source.length)
  return pieces
}

function nextBeginning(source: string, from: number): RegExpExecArray | null {
  BEGINNING.lastIndex = from
  return BEGINNING.exec(source)
}

function pieceAt(source: string, beginning: string, from: number): Piece {
  if (beginning === '<#--') {
    const end = source.indexOf('-->', from)
    if (end === -1) throw new TemplateSyntaxError('has a comment without its end', from, 'add -->')
    return { kind: 'comment', from, to: end + 3 }
  }
  if (beginning === '#{') {
    throw new TemplateSyntaxError('has #{…}, which is not supported', from, 'write it with $ and ?string("0.00")')
  }
  if (beginning === '${') {
    const { tokens, end } = tokensIn(source, from + 2, '}')
    return { kind: 'print', tokens, from, to: end }
  }
  const kind = beginning.startsWith('</') ? 'close' : 'open'
  const at = from + beginning.length
  if (beginning.endsWith('@')) {
    const { tokens, end, isEmptyTag } = tokensIn(source, at, '>')
    return { kind, name: '@', tokens, isEmpty: isEmptyTag, from, to: end }
  }
  TAG_NAME.lastIndex = at
  const found = TAG_NAME.exec(source)?.[0] ?? ''
  if (found === '') throw new TemplateSyntaxError(`has ${beginning} without a name`, from, 'put it into <#noparse>')
  const { tokens, end, isEmptyTag } = tokensIn(source, at + found.length, '>')
  return { kind, name: found.toLowerCase(), tokens, isEmpty: isEmptyTag, from, to: end }
}

interface Segment {
  readonly piece: number
  text: string
}

/** A line of the template, in which tags count as if they had no line breaks. */
interface Line {
  readonly segments: Segment[]
  /** The first thing is text, the last thing is text. */
  first: Segment | null
  last: Segment | null
  isEmpty: boolean
  hasTag: boolean
  hasOutput: boolean
  trims: ('left' | 'right')[]
  isKept: boolean
}

/**
 * White-space stripping: a line of tags alone leaves neither its indentation nor its line break; `<#t>` and its like
 * trim their line. Returns the texts by the number of their piece.
 */
export function strippedTexts(pieces: readonly Piece[]): ReadonlyMap<number, string> {
  const texts = new Map<number, string>()
  let line = newLine()
  const close = (): void => {
    strip(line)
    for (const { piece, text } of line.segments) texts.set(piece, (texts.get(piece) ?? '') + text)
    line = newLine()
  }
  for (const [at, piece] of pieces.entries()) {
    if (piece.kind !== 'text') {
      line.hasTag ||= piece.kind !== 'print'
      line.hasOutput ||= piece.kind === 'print'
      if (piece.kind === 'open' && Object.hasOwn(TRIMS, piece.name)) {
        line.trims.push(...TRIMS[piece.name]!)
        line.isKept ||= piece.name === 'nt'
      }
      line.isEmpty = false
      line.last = null
      continue
    }
    for (const text of piece.text.match(/[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$/g) ?? []) {
      const segment = { piece: at, text }
      if (line.isEmpty) line.first = segment
      line.segments.push(segment)
      line.isEmpty = false
      line.last = segment
      line.hasOutput ||= text.trim() !== ''
      if (/[\r\n]$/.test(text)) close()
    }
  }
  close()
  return texts
}

function newLine(): Line {
  const flags = { isEmpty: true, hasTag: false, hasOutput: false, isKept: false }
  return { segments: [], first: null, last: null, trims: [], ...flags }
}

function strip(line: Line): void {
  if (line.isKept) return
  const isOfTags = line.hasTag && !line.hasOutput
  if (line.first !== null && (isOfTags || line.trims.includes('left'))) line.first.text = line.first.text.trimStart()
  if (line.last !== null && (isOfTags || line.trims.includes('right'))) line.last.text = line.last.text.trimEnd()
}
