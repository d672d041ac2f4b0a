import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app";
import { follow } from "./lib/live";
import { followTheme } from "./lib/settings";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/parts.css";
import "./styles/pages.css";

followTheme();
follow();
const root = document.getElementById("root");
if (root)
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
