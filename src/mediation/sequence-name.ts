/** The name that the text of a sequence gives it: it decides, because exports call the file otherwise. */

const COMMENT = /<!--[\s\S]*?-->/g
const NAME = /<(?:\w+:)?sequence\b[^>]*?\sname\s*=\s*["']([^"'<&]+)["']/

/** Returns undefined for a text without a name that can be read; parsing it reports why. */
export function sequenceNameIn(text: string): string | undefined {
  return NAME.exec(text.replaceAll(COMMENT, ''))?.[1]
}
