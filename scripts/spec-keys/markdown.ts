/** The part of the specification about configuration, as headings, table rows and sentences with their lines. */

export interface Block {
  readonly line: number
  readonly kind: 'heading' | 'row' | 'sentence'
  /** The title of a heading, or a sentence without its full stop. */
  readonly text: string
  /** Cells of a table row by column; empty otherwise. */
  readonly cells: Readonly<Record<string, string>>
  /** First line of the paragraph or bullet of a sentence. */
  readonly paragraph: number
}

/** A text of the specification that the grammar does not understand. */
export class SpecError extends Error {
  readonly line: number

  constructor(line: number, what: string) {
    super(what)
    this.name = 'SpecError'
    this.line = line
  }
}

/** Blocks below the heading `## title`, up to the next of its level. `rewrite` gets whole paragraphs. */
export function blocksOf(markdown: string, title: string, rewrite: (text: string) => string): readonly Block[] {
  const lines = markdown.split('\n')
  const start = lines.indexOf(`## ${title}`) + 1
  if (start === 0) throw new SpecError(1, `there is no part "## ${title}"`)
  const length = lines.slice(start).findIndex(line => line.startsWith('## '))
  const part = length === -1 ? lines.slice(start) : lines.slice(start, start + length)
  const blocks: Block[] = []
  let columns: readonly string[] = []
  part.forEach((text, index) => {
    const line = start + index + 1
    if (!text.startsWith('|')) {
      columns = []
      blocks.push(...plainBlocks(text.startsWith('#') ? text : rewrite(text.replace(/^- /, '')), line))
    } else if (columns.length === 0) columns = cellsOf(text)
    else if (!/^\|[-| :]+\|$/.test(text)) blocks.push(rowOf(text, line, columns))
  })
  return blocks
}

function plainBlocks(text: string, line: number): readonly Block[] {
  if (text.trim() === '') return []
  const plain = { line, cells: {}, paragraph: line }
  if (text.startsWith('#')) return [{ ...plain, kind: 'heading', text: text.replace(/^#+\s*/, '') }]
  const sentences = sentencesOf(text)
  return sentences.map(sentence => ({ ...plain, kind: 'sentence', text: sentence }))
}

function rowOf(text: string, line: number, columns: readonly string[]): Block {
  const cells = cellsOf(text)
  if (cells.length !== columns.length)
    throw new SpecError(line, `${cells.length} cells below ${columns.length} columns`)
  const named = Object.fromEntries(columns.map((column, index) => [column, cells[index]!]))
  return { line, kind: 'row', text: '', cells: named, paragraph: line }
}

function cellsOf(text: string): readonly string[] {
  const inner = text.trim().replace(/^\|/, '').replace(/\|$/, '')
  return inner.split('|').map(cell => cell.trim())
}

/** A full stop outside parentheses, before white space or the end, ends a sentence. */
function sentencesOf(text: string): readonly string[] {
  return splitOutside(text, /^\.(?=\s|$)/).filter(sentence => sentence !== '')
}

/** Splits at matches of `separator` (anchored with ^) outside parentheses and backticks. */
export function splitOutside(text: string, separator: RegExp): readonly string[] {
  const pieces: string[] = []
  let from = 0
  let at = 0
  while (at < text.length) {
    const skipped = enclosedEnd(text, at)
    const match = skipped === at ? separator.exec(text.slice(at)) : null
    if (match !== null) {
      pieces.push(text.slice(from, at))
      from = at + match[0].length
    }
    at = match === null ? Math.max(skipped, at + 1) : from
  }
  return [...pieces, text.slice(from)].map(piece => piece.trim())
}

/** Index after the parenthesis or backticks that open at `at`; `at` itself where neither opens. */
export function enclosedEnd(text: string, at: number): number {
  if (text[at] === '`') return text.indexOf('`', at + 1) + 1 || text.length
  if (text[at] !== '(') return at
  let depth = 0
  for (let next = at; next < text.length; next++) {
    if (text[next] === '(') depth++
    else if (text[next] === ')' && --depth === 0) return next + 1
  }
  return text.length
}

/** All texts in backticks. */
export function ticksOf(text: string): readonly string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(match => match[1]!)
}
