/**
 * Renders templates of policies (`.j2`): the part of the Jinja language that policies of the reference platform use.
 * `{{ name }}`, `{{ name | default('text') }}`, `{% if … %}` with elif, else and endif, and comments. Conditions: a
 * name, `name is defined`, `==`, `!=`, `not`, `and`, `or`. Anything else is an error with its line.
 */

/** Why a template cannot be rendered. */
interface TemplateError {
  /** Number of the line, from 1. */
  readonly line: number
  readonly expected: string
  readonly hint: string
}

type Values = ReadonlyMap<string, string>

/** An open branch. `hasChosen`: the text of one of its siblings has been written. */
interface Branch {
  readonly line: number
  isWritten: boolean
  hasChosen: boolean
}

const MARK = /\{\{([\s\S]*?)\}\}|\{%-?([\s\S]*?)-?%\}|\{#[\s\S]*?#\}/g
const NAME = '[A-Za-z_][A-Za-z0-9_]*'
const OUTPUT = new RegExp(`^(${NAME})(?:\\s*\\|\\s*default\\(\\s*(?:'([^']*)'|"([^"]*)")\\s*\\))?$`)
const COMPARISON = new RegExp(`^(${NAME})\\s*(==|!=)\\s*(?:'([^']*)'|"([^"]*)"|(true|false|\\d+))$`)
const DEFINED = new RegExp(`^(${NAME})\\s+is\\s+(not\\s+)?defined$`)
const ALONE = new RegExp(`^${NAME}$`)
const CDATA = '<![CDATA['

class Unrenderable extends Error {
  readonly detail: TemplateError

  constructor(detail: TemplateError) {
    super(detail.expected)
    this.detail = detail
  }
}

/** Escapes values as XML text, and within a CDATA section only the end of the section. */
export function renderTemplate(template: string, values: Values): string | TemplateError {
  try {
    return render(template, values)
  } catch (error) {
    if (error instanceof Unrenderable) return error.detail
    throw error
  }
}

function render(template: string, values: Values): string {
  const branches: Branch[] = []
  let text = ''
  let end = 0
  const isWritten = (): boolean => branches.every(branch => branch.isWritten)
  for (const match of template.matchAll(MARK)) {
    const [whole, output, statement] = match
    const line = lineAt(template, match.index)
    // Parts that are left out keep their line feeds, so that diagnostics of the sequence name the line of the template.
    const before = template.slice(end, match.index)
    text += isWritten() ? before : onlyLineFeeds(before)
    end = match.index + whole.length
    if (output === undefined) text += onlyLineFeeds(whole)
    if (statement !== undefined) enter(statement.trim(), line, branches, values)
    else if (output !== undefined && isWritten()) text += escapedFor(text, outputOf(output.trim(), line, values))
  }
  const open = branches.at(-1)
  if (open !== undefined) fail(open.line, '{% if %} is not closed', 'add {% endif %}')
  return text + template.slice(end)
}

function enter(statement: string, line: number, branches: Branch[], values: Values): void {
  const [, word = '', condition = ''] = /^(\w+)\s*([\s\S]*)$/.exec(statement) ?? []
  const innermost = branches.at(-1)
  if (word === 'if') {
    const holds = holdsIn(condition, line, values)
    branches.push({ line, isWritten: holds, hasChosen: holds })
  } else if (!['elif', 'else', 'endif'].includes(word)) {
    fail(line, `{% ${word} %} is not supported`, 'templates have if, elif, else and endif')
  } else if (innermost === undefined) fail(line, `{% ${word} %} is outside of {% if %}`, 'remove it')
  else if (word === 'endif') branches.pop()
  else {
    const holds = word === 'else' || holdsIn(condition, line, values)
    innermost.isWritten = !innermost.hasChosen && holds
    innermost.hasChosen ||= holds
  }
}

function outputOf(expression: string, line: number, values: Values): string {
  const match = OUTPUT.exec(expression)
  if (match === null) {
    return fail(line, `{{ ${expression} }} is not supported`, "write {{ name }} or {{ name | default('text') }}")
  }
  const value = values.get(match[1]!)
  return value === undefined || value === '' ? (match[2] ?? match[3] ?? '') : value
}

/** `or` binds weaker than `and`, `and` weaker than `not`. */
function holdsIn(condition: string, line: number, values: Values): boolean {
  return condition
    .split(/\s+or\s+/)
    .some(some => some.split(/\s+and\s+/).every(one => isTrue(one.trim(), line, values)))
}

function isTrue(condition: string, line: number, values: Values): boolean {
  if (/^not\s/.test(condition)) return !isTrue(condition.slice(3).trim(), line, values)
  const defined = DEFINED.exec(condition)
  if (defined !== null) return values.has(defined[1]!) === (defined[2] === undefined)
  const compared = COMPARISON.exec(condition)
  if (compared !== null) {
    const other = compared[3] ?? compared[4] ?? compared[5]!
    return ((values.get(compared[1]!) ?? '') === other) === (compared[2] === '==')
  }
  if (!ALONE.test(condition)) fail(line, `the condition ${condition} is not supported`, 'write name, or name == "text"')
  return !['', 'false'].includes(values.get(condition) ?? '')
}

function escapedFor(before: string, value: string): string {
  const isInCdata = before.lastIndexOf(CDATA) > before.lastIndexOf(']]>')
  return isInCdata ? value.replaceAll(']]>', ']]]]><![CDATA[>') : escapeXml(value)
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
  // Attributes would turn them into spaces (XML 1.0 3.3.3).
  '\n': '&#10;',
  '\t': '&#9;',
  '\r': '&#13;',
}

export function escapeXml(text: string): string {
  return text.replaceAll(/[&<>"'\n\t\r]/g, character => ESCAPES[character]!)
}

function onlyLineFeeds(text: string): string {
  return text.replaceAll(/[^\n]/g, '')
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length
}

function fail(line: number, expected: string, hint: string): never {
  throw new Unrenderable({ line, expected, hint })
}
