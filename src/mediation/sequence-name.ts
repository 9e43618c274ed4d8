/** The name that the text of a sequence or template gives it: it decides, because exports call the file otherwise. */
import { templateKey } from './sequence-templates.ts'

const COMMENT = /<!--[\s\S]*?-->/g
const INSTRUCTION = /<\?[\s\S]*?\?>/g
const NAME = /<(?:\w+:)?sequence\b[^>]*?\sname\s*=\s*["']([^"'<&]+)["']/
const TEMPLATE = /^\s*<(?:\w+:)?template\b(?:[^>]*?\sname\s*=\s*["']([^"'<&]+)["'])?/

/**
 * Returns undefined for a text without a name that can be read; parsing it reports why. The name of a template is that
 * of its plan. `stem`: name of the file, for a template without a name.
 */
export function sequenceNameIn(text: string, stem: string): string | undefined {
  const plain = text.replaceAll(COMMENT, '').replaceAll(INSTRUCTION, '').replace('\uFEFF', '')
  const template = TEMPLATE.exec(plain)
  return template === null ? NAME.exec(plain)?.[1] : templateKey(template[1] ?? stem)
}
