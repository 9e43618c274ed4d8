/** Where commands write, and colours where there is somebody to see them. */
import { styleText } from 'node:util'

export interface Terminal {
  readonly isTTY?: boolean
  write(text: string): unknown
}

type Style = 'bold' | 'dim' | 'green' | 'red' | 'yellow'

/** Plain text unless the output is a terminal and NO_COLOR is not set. */
export function paint(terminal: Terminal, style: Style, text: string): string {
  const plain = terminal.isTTY !== true || (process.env.NO_COLOR ?? '') !== ''
  return plain ? text : styleText(style, text, { validateStream: false })
}
