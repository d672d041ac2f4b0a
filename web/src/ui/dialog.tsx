import { type ReactNode, useEffect, useRef } from "react";
import { CloseButton } from "./basics";

interface DialogProps {
  title: string;
  close: () => void;
  className?: string;
  bare?: boolean;
  children: ReactNode;
}

/** A modal of the browser's own: it traps the focus, Esc closes it, the focus goes back after. */
export function Dialog({ title, close, className = "", bare = false, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current;
    if (dialog && !dialog.open) dialog.showModal();
    return () => dialog?.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Esc closes it; a click beside it is the mouse's way
    <dialog
      ref={ref}
      className={`dialog ${className}`}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClick={(event) => {
        if (event.target === ref.current) close();
      }}
    >
      {bare ? null : (
        <header className="dialog-head">
          <h2>{title}</h2>
          <CloseButton close={close} />
        </header>
      )}
      {children}
    </dialog>
  );
}
