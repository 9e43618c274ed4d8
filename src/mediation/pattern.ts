/**
 * Regular expressions of sequences. They are written for Java; what JavaScript would silently read in another way is
 * refused. They run over text that clients may have written: a client must not be able to keep the thread busy.
 */

interface ReadPattern {
  /** Source for `matcherOf`; undefined when it is refused. */
  readonly pattern?: string
  readonly why: string
  readonly remedy: string
}

/** Java's own; with the flag `u` most others are errors of syntax. */
const JAVA_ONLY: readonly (readonly [RegExp, string, string])[] = [
  [/^\(\?[a-zA-Z]+\)/, 'has flags for all of it', 'write (?i:…) around it'],
  [/\\Q|\\E/, 'quotes with \\Q', 'escape each character with \\'],
  [/\\[AzZG]/, 'has an anchor of Java', 'leave it out: all of the text is matched'],
  [/\(\?>|(?<!\\)[*+?]\+|\{\d+(?:,\d*)?\}\+/, 'is possessive or atomic', 'leave that out'],
  [
    /\\p\{(?:Alpha|Upper|Lower|Digit|Alnum|Punct|Space|XDigit|Blank|Cntrl|Graph|Print|ASCII)\}/,
    'has a class of POSIX',
    'write [A-Za-z] or the like',
  ],
  [/&&/, 'has an intersection of classes', 'write the class out'],
]
/** What JavaScript takes behind a backslash with the flag `u`, outside classes. */
const PUNCTUATION_KEPT = '^$\\.*+?()[]{}|/-'

export function patternOf(text: string): ReadPattern {
  const java = JAVA_ONLY.find(([found]) => found.test(text))
  if (java !== undefined) return { why: java[1], remedy: java[2] }
  const pattern = withoutIdleEscapes(text)
  try {
    new RegExp(`^(?:${pattern})$`, 'u')
  } catch (error) {
    const said = (error as Error).message.replace(/^.*: /s, '')
    return { why: `is no regular expression: ${said}`, remedy: 'correct it' }
  }
  if (repeatsRepetition(pattern)) {
    return { why: 'repeats what has no one length or start, which may take forever', remedy: 'write (a+)* as a*' }
  }
  return { pattern, why: '', remedy: '' }
}

/** Java takes a backslash in front of any punctuation; JavaScript only where it means something. */
function withoutIdleEscapes(text: string): string {
  let inClass = false
  let pattern = ''
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!
    if (character !== '\\') {
      if (character === '[') inClass = true
      else if (character === ']') inClass = false
      pattern += character
      continue
    }
    const next = text[++at] ?? ''
    const isKept =
      /[\p{L}\p{N}]/u.test(next) || next === '' || (PUNCTUATION_KEPT.includes(next) && (inClass || next !== '-'))
    pattern += isKept ? `\\${next}` : next
  }
  return pattern
}

/** One group that is open. */
interface Group {
  /** Where its next alternative begins. */
  from: number
  /** First characters of its alternatives; '' for what may be any. */
  readonly starts: string[]
  /** Something in it is there more or less often. */
  varies: boolean
  /** And that without end. */
  isEndless: boolean
}

/**
 * What is repeated must be of one length and one kind: else the ways to share a text among the rounds are 2 to its
 * length, and a text that fits none of them is tried in each.
 */
function repeatsRepetition(pattern: string): boolean {
  const groups: Group[] = [{ from: 0, starts: [], varies: false, isEndless: false }]
  for (let at = 0; at < pattern.length; at++) {
    const group = groups.at(-1)!
    const character = pattern[at]!
    if (character === '|') {
      group.starts.push(startOf(pattern, group.from))
      group.from = at + 1
    } else if (character === '(') {
      const opening = /^\((?:\?(?:[:=!]|<[=!]|<\w+>|[a-z-]*:))?/.exec(pattern.slice(at))![0]
      groups.push({ from: at + opening.length, starts: [], varies: false, isEndless: false })
      at += opening.length - 1
    } else if (character === ')') {
      groups.pop()
      group.starts.push(startOf(pattern, group.from))
      const isAmbiguous = group.starts.length > 1 && (group.starts.includes('') || hasSame(group.starts))
      const after = pattern.slice(at + 1, at + 20)
      if ((group.varies || isAmbiguous) && MANY.test(after)) return true
      if (group.isEndless && COUNTED.test(after)) return true
      const around = groups.at(-1)!
      around.varies ||= group.varies || isAmbiguous || VARYING.test(after)
      around.isEndless ||= group.isEndless || ENDLESS.test(after)
    } else {
      at = endOfPart(pattern, at)
      const after = pattern.slice(at + 1, at + 20)
      group.varies ||= VARYING.test(after)
      group.isEndless ||= ENDLESS.test(after)
    }
  }
  return false
}

const ENDLESS = /^(?:[*+]|\{\d+,\})/
const COUNTED = /^\{/
/** Ten times and more. */
const MANY = /^(?:[*+]|\{\d+,\}|\{(?:\d+,)?\d\d)/
const VARYING = /^(?:[*+?]|\{\d+,)/

/** Index of the last character of an escape, a class, or the character itself. */
function endOfPart(pattern: string, at: number): number {
  if (pattern[at] === '\\') return at + 1
  if (pattern[at] !== '[') return at
  for (let end = at + 1; end < pattern.length; end++) {
    if (pattern[end] === '\\') end++
    else if (pattern[end] === ']') return end
  }
  return pattern.length
}

function startOf(pattern: string, at: number): string {
  return /^[\p{L}\p{N}]/u.test(pattern.slice(at, at + 2)) && !/^.[*?{]/.test(pattern.slice(at)) ? pattern[at]! : ''
}

function hasSame(texts: readonly string[]): boolean {
  return new Set(texts.map(text => text.toLowerCase())).size < texts.length
}

/** Of a text that is longer nothing is matched; by the parts of a pattern that may be of any length. */
function textMax(pattern: string): number {
  const parts = pattern.match(/(?<!\\)(?:[*+]|\{\d+,\})/g)?.length ?? 0
  if (parts <= 2) return 8192
  return parts === 3 ? 2048 : 1024
}

/** How many groups a pattern captures. */
export function groupsOf(pattern: string): number {
  return new RegExp(`${pattern}|`, 'u').exec('')!.length - 1
}

/** Matches all of a text, as the reference platform does. */
export function matcherOf(
  pattern: string,
  complain: (cause: string) => void,
): (text: string) => RegExpExecArray | null {
  const whole = new RegExp(`^(?:${pattern})$`, 'u')
  const most = textMax(pattern)
  return text => {
    if (text.length <= most) return whole.exec(text)
    complain(`a text of more than ${most} characters matches nothing`)
    return null
  }
}
