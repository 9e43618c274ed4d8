/**
 * `<payloadFactory>`: a new payload from a format and arguments. Whatever the arguments, the payload is well-formed and
 * of the structure of its format: they are escaped for where they stand, and are data only.
 */
import type { XmlElement } from '../../config/xml.ts'
import type { Expression } from '../expression.ts'
import { argumentsOf, jsonPieces, type Piece, textPieces } from '../format-pieces.ts'
import { jsonOfXml, nodesOfJson, primitive } from '../json-xml.ts'
import { formatOf } from '../media-type.ts'
import { mediator } from '../mediator.ts'
import type { Message, Payload } from '../message.ts'
import type { Reading } from '../reading.ts'
import { TEXT_MAX } from '../typed-value.ts'
import { type Json, markupOf, textOf, type Value } from '../value.ts'
import { element as xmlElement, type XmlElementNode, type XmlNode } from '../xml-tree.ts'

type Format =
  | { readonly media: 'json' | 'text'; readonly text: string }
  /** With `$1` in its texts and attributes. */
  | { readonly media: 'xml'; readonly root: XmlElementNode }

interface Argument {
  readonly from: Expression
  /** It is text, whatever it looks like. */
  readonly isLiteral: boolean
}

interface PayloadSettings {
  readonly format: Format
  readonly of: readonly Argument[]
}

const ARGUMENTS_MAX = 100
const MEDIA_TYPES = { json: 'application/json', xml: 'application/xml', text: 'text/plain' } as const

export const payloadFactory = mediator<PayloadSettings>({
  name: 'payloadFactory',
  attributes: ['media-type', 'template-type'],
  elements: ['format', 'args'],

  read(element, reading) {
    const media = reading.choice(element, 'media-type', ['xml', 'json', 'text'], 'xml')
    const template = element.attribute('template-type').toLowerCase()
    if (!['', 'default'].includes(template)) {
      return reading.fault(element, 'template-type', 'comes with mediation', 'write it with $1, $2', template)
    }
    const within = reading.only(element, 'format')
    const of = readArguments(reading.only(element, 'args'), reading)
    if (media === undefined || of === undefined) return undefined
    if (within === undefined) return reading.fault(element, 'format', 'is missing', 'add <format>')
    if (within.has('key')) return reading.fault(within, 'key', 'comes with mediation', 'write the format here')
    reading.attributes(within, [])
    const format = media === 'xml' ? readXml(within, reading) : readText(within, media, reading)
    if (format === undefined) return undefined
    const missing = used(format).find(number => number < 1 || number > of.length)
    if (missing === undefined) return { format, of }
    return reading.fault(within, '', `there is no argument for $${missing}`, 'add one to <args>')
  },

  compile({ format, of }, compiling) {
    const build = compileFormat(
      format,
      of.map(({ isLiteral }) => isLiteral),
    )
    const evaluates = of.map(({ from, isLiteral }) => {
      const evaluate = compiling.expression(from)
      return isLiteral ? (message: Message): Value => markupOf(evaluate(message)) : evaluate
    })
    return message => {
      const payload = build(evaluates.map(evaluate => evaluate(message)))
      if (payload === null) compiling.complain(`the payload has more than ${TEXT_MAX} characters`)
      message.payload = payload
      describe(message, format.media)
      return true
    }
  },
})

/** As on the reference platform: the payload is said to be what it is, and there is a body again. */
function describe(message: Message, media: Format['media']): void {
  const before = formatOf(textOf(message.get('axis2', 'messageType')))
  const isKept = media === 'xml' && ['xml', 'soap11', 'soap12'].includes(before)
  if (!isKept) message.set('axis2', 'messageType', MEDIA_TYPES[media])
  message.remove('axis2', 'NO_ENTITY_BODY')
}

function readXml(within: XmlElement, reading: Reading): Format | undefined {
  reading.noText(within)
  const [root, second] = within.children
  if (root === undefined || second !== undefined) {
    return reading.fault(within, '', 'expected one element', 'put one around all', `${within.children.length}`)
  }
  return { media: 'xml', root: reading.tree(root) }
}

function readText(within: XmlElement, media: 'json' | 'text', reading: Reading): Format | undefined {
  if (within.children.length > 0) {
    return reading.fault(within, '', `holds elements, but media-type is ${media}`, 'correct media-type')
  }
  const { text } = within
  if (media === 'text') return { media, text }
  const sample = jsonPieces(text).map(piece => (typeof piece === 'string' ? piece : piece.isQuoted ? 'x' : 'null'))
  try {
    JSON.parse(sample.join(''))
    return { media, text }
  } catch (error) {
    // What follows is a piece of the format.
    const said = (error as Error).message.replace(/,? (?:"|\.\.\.|in JSON)[\s\S]*$/, '')
    return reading.fault(within, '', `is no JSON: ${said}`, 'correct it; $1 stands for a value, "$1" for its text')
  }
}

function readArguments(args: XmlElement | undefined, reading: Reading): readonly Argument[] | undefined {
  if (args === undefined) return []
  reading.attributes(args, [])
  reading.noText(args)
  reading.elements(args, ['arg'])
  const given = args.children
  if (given.length > ARGUMENTS_MAX) {
    return reading.fault(args, 'arg', `are more than ${ARGUMENTS_MAX}`, 'take fewer', `${given.length}`)
  }
  const read = given.map(arg => readArgument(arg, reading))
  return read.every(argument => argument !== undefined) ? read : undefined
}

function readArgument(arg: XmlElement, reading: Reading): Argument | undefined {
  reading.attributes(arg, ['value', 'expression', 'evaluator', 'literal'])
  reading.elements(arg, [])
  reading.noText(arg)
  const evaluator = reading.choice(arg, 'evaluator', ['xml', 'json'], 'xml')
  const isLiteral = reading.flag(arg, 'literal')
  if (evaluator === undefined || isLiteral === undefined) return undefined
  if (evaluator === 'json' && !arg.has('expression')) {
    return reading.fault(arg, 'evaluator', 'is of an expression', 'leave it out')
  }
  // With either evaluator, properties are written as elsewhere.
  const isPath = evaluator === 'json' && /^\s*\$(?!\w+:)/.test(arg.attribute('expression'))
  const from = isPath ? reading.jsonPath(arg, 'expression') : reading.valueOrExpression(arg)
  return from === undefined ? undefined : { from, isLiteral }
}

function used(format: Format): readonly number[] {
  if (format.media === 'xml') return usedWithin(format.root)
  return argumentsOf(format.media === 'json' ? jsonPieces(format.text) : textPieces(format.text))
}

function usedWithin(node: XmlNode): readonly number[] {
  if (typeof node === 'string') return argumentsOf(textPieces(node))
  const attributes = node.attributes.flatMap(([, value]) => argumentsOf(textPieces(value)))
  return [...attributes, ...node.children.flatMap(usedWithin)]
}

/** null: too long. */
type Build = (values: readonly Value[]) => Payload | null

/** `literals`: which arguments are text whatever they look like. XML takes every text as it is. */
function compileFormat(format: Format, literals: readonly boolean[]): Build {
  if (format.media === 'xml') {
    const build = compileElement(format.root)
    return values => {
      const budget = { left: TEXT_MAX }
      const root = build(values, budget)
      return budget.left < 0 ? null : { kind: 'xml', root }
    }
  }
  const kind = format.media
  const pieces = kind === 'json' ? jsonPieces(format.text) : textPieces(format.text)
  return values => {
    let text = ''
    for (const piece of pieces) {
      if (typeof piece === 'string') text += piece
      else {
        const value = values[piece.argument - 1]!
        text += kind === 'text' ? markupOf(value) : jsonText(value, piece.isQuoted, literals[piece.argument - 1]!)
      }
      if (text.length > TEXT_MAX) return null
    }
    return { kind, text }
  }
}

function jsonText(value: Value, isQuoted: boolean, isLiteral: boolean): string {
  if (isQuoted) return JSON.stringify(textOf(value)).slice(1, -1)
  if (isLiteral) return JSON.stringify(value)
  return JSON.stringify(bare(value))
}

/** Without quotes around it: what reads as a number or truth is one; other text gets its quotes. */
function bare(value: Value): Json {
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
  if (typeof value === 'boolean') return value
  if (typeof value === 'string') return primitive(value)
  if (value.kind === 'json') return value.value
  const [first = ''] = value.nodes
  return typeof first === 'string' ? bare(first) : jsonOfXml(first)
}

interface Budget {
  left: number
}
type BuildElement = (values: readonly Value[], budget: Budget) => XmlElementNode

function compileElement(node: XmlElementNode): BuildElement {
  const attributes = node.attributes.map(([name, value]) => ({ name, pieces: textPieces(value) }))
  const children = node.children.map(child =>
    typeof child === 'string' ? { pieces: textPieces(child) } : { build: compileElement(child) },
  )
  return (values, budget) =>
    xmlElement(
      node.name,
      children.flatMap(child =>
        'build' in child
          ? [child.build(values, budget)]
          : child.pieces.flatMap(piece => nodesOf(piece, values, budget)),
      ),
      attributes.map(({ name, pieces }) => [
        name,
        pieces.map(piece => (typeof piece === 'string' ? piece : taken(textAt(piece, values), budget))).join(''),
      ]),
    )
}

function textAt(piece: Exclude<Piece, string>, values: readonly Value[]): string {
  return textOf(values[piece.argument - 1])
}

function nodesOf(piece: Piece, values: readonly Value[], budget: Budget): readonly XmlNode[] {
  if (typeof piece === 'string') return [piece]
  const value = values[piece.argument - 1]!
  if (typeof value !== 'object') return [taken(textOf(value), budget)]
  taken(markupOf(value), budget)
  return value.kind === 'xml' ? value.nodes : nodesOfJson(value.value)
}

/** Nothing is built any more when all of it would be too long. */
function taken(text: string, budget: Budget): string {
  budget.left -= text.length
  return budget.left < 0 ? '' : text
}
